# On any node: ends what copies of a move, or of all moves (ONLY is empty) but those KEPT, have under way here, and removes their keys and directories.
#   sh -c "$(cat keys.sh ending.sh)" ending PLACE KEYS ONLY "KEPT KEPT ..."
set -u
umask 077
keys=$(keys_of "$2")
for place in "$1"/htas-move-*; do
  [ -d "$place" ] && [ ! -h "$place" ] && [ -O "$place" ] || continue
  name=${place##*/htas-move-}
  move=${name%%-*}
  [ -z "$3" ] || [ "$move" = "$3" ] || continue
  case " $4 " in *" $move "*) continue ;; esac
  pid=$(cat "$place/pid" 2>/dev/null)
  if [ -n "$pid" ] && grep -q "htas-move-$move" "/proc/$pid/cmdline" 2>/dev/null && kill "$pid" 2>/dev/null; then
    left=50
    while [ "$left" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do left=$((left - 1)) && sleep 0.1; done
  fi
  [ ! -d "$place" ] || { mv "$place" "$place-closed" && rm -rf "$place-closed"; }
done
without '$NF ~ /^htas-move-[0-9a-f]+$/ && (only == "" || $NF == "htas-move-" only) && !index(kept, " " substr($NF, 11) " ")' \
  -v only="$3" -v kept=" $4 "
