# The file of keys that sshd lets in, which is the operator's: a line of ours is added and taken out again under a lock on its directory.
# At no moment is the file gone or cut short: a new one takes its place, with its owner and mode.
unset TZ # sshd reads expiry-time by the machine's own
keys_of() { # FILE, as sshd_config has it: relative to the home directory unless it is absolute
  case $1 in /*) file=$1 ;; *) file=$HOME/$1 ;; esac
  readlink -f "$file" || echo "$file"
}
with() ( # LINE
  mkdir -p "${keys%/*}" && exec 9<"${keys%/*}" && flock -w 10 9 || exit 1
  [ ! -s "$keys" ] || [ -z "$(tail -c 1 "$keys")" ] || echo >>"$keys" || exit 1 # else its last key would end in ours
  printf '%s\n' "$1" >>"$keys"
)
without() ( # CONDITION of the lines to take out, as awk has it; further words are options of awk
  condition=$1
  shift
  [ -f "$keys" ] && grep -q ' htas-move-' "$keys" || exit 0
  exec 9<"${keys%/*}" && flock -w 10 9 || exit 1
  new=$keys.htas-new
  cp -a "$keys" "$new" && awk "$@" "$condition { next } { print }" "$keys" >"$new" && mv -f "$new" "$keys" || { rm -f "$new"; exit 1; }
)
