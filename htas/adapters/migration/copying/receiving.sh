# On the target: imports one image, of which the daemon says all but the layer's bytes; these the source brings, with a key let in for that alone.
#   sh -c "$(cat keys.sh receiving.sh)" htas-move-ID PLACE KEYS SOURCE SIZE REST WITHIN_S IMPORT
# Is told the image archive up to the layer (base64), then the source's public key. Says `open` when the key is let in. REST bytes end the archive.
# The end of standard input ends it all: so it does when the daemon dies.
set -u
umask 077
keys=$(keys_of "$2")
door=$(mktemp -d "$1/$0-XXXXXXXXXXXXXXXX") || exit 1
reader='' importer=''
leave() {
  trap - EXIT
  trap '' HUP INT TERM PIPE
  without 'index($0, place)' -v place="$door/"
  [ -z "$reader" ] || kill "$reader" 2>/dev/null
  [ -z "$importer" ] || wait "$importer" # the end of the file is where it gives up and tidies
  mv "$door" "$door-closed" && rm -rf "$door-closed" # renamed first: nobody can make a file in it now that the pipe is gone
}
trap leave EXIT
trap 'exit 1' HUP INT TERM PIPE
echo $$ >"$door/pid"
read -r head && read -r key && printf '%s' "$head" | base64 -d >"$door/head" || exit 1
mkfifo "$door/layer" "$door/begun" || exit 1
exec 3<&0 # what runs in the background would read /dev/null
{
  sh -c 'echo $$ >"$0/begun"; cat "$0/head" && exec head -c "$1" <"$0/layer"' "$door" "$4" && head -c "$5" /dev/zero
} 3<&- | { trap '' HUP && eval "$7"; } 3<&- &
importer=$!
read -r reader <"$door/begun"
until_=$(date -d "@$(($(date +%s) + $6 + 60))" +%Y%m%d%H%M%S) || exit 1
command="exec timeout $6 sh -c 'echo here; exec cat >$door/layer'"
with "restrict,from=\"$3\",expiry-time=\"$until_\",command=\"$command\" $key $0" || exit 1
echo open
{ read -r _ <&3; kill "$reader"; } >/dev/null 2>&1 &
watcher=$!
wait "$importer"
code=$?
reader='' importer=''
kill "$watcher" 2>/dev/null
exit "$code"
