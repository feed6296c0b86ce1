# On the source: sends one archive to the target by ssh, with a key that is made here for this one copy and dies with it.
#   sh -c "$(cat sending.sh)" htas-move-ID PLACE ARCHIVE OWN_ADDRESS USER TARGET PORT PATIENCE
# Says: sha256 and size, then the public key. Is told the target's known host keys, ended by an empty line. The target itself says `here`.
# The end of standard input ends it all: so it does when the daemon dies.
set -u
umask 077
safe=$(mktemp -d "$1/$0-XXXXXXXXXXXXXXXX") || exit 1
sender=''
leave() {
  trap - EXIT
  trap '' HUP INT TERM PIPE
  [ -z "$sender" ] || kill "$sender" 2>/dev/null
  mv "$safe" "$safe-closed" && rm -rf "$safe-closed"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM PIPE
echo $$ >"$safe/pid"
ssh-keygen -q -t ed25519 -N '' -C "$0" -f "$safe/id" </dev/null || exit 1
echo $(sha256sum <"$2") $(stat -c %s "$2")
cat "$safe/id.pub"
while :; do
  IFS= read -r line || exit 1
  [ -n "$line" ] || break
  printf '%s\n' "$line"
done >"$safe/known"
exec 3<&0 # what runs in the background would read /dev/null
ssh -F /dev/null -T -b "$3" -l "$4" -p "$6" -i "$safe/id" -o IdentitiesOnly=yes -o IdentityAgent=none -o BatchMode=yes \
  -o StrictHostKeyChecking=yes -o UserKnownHostsFile="$safe/known" -o GlobalKnownHostsFile=/dev/null -o UpdateHostKeys=no \
  -o ConnectTimeout="$7" -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o LogLevel=ERROR -o Ciphers=^aes128-gcm@openssh.com \
  -- "$5" <"$2" 3<&- &
sender=$!
{ read -r _ <&3; kill "$sender"; } >/dev/null 2>&1 &
watcher=$!
wait "$sender"
code=$?
sender=''
kill "$watcher" 2>/dev/null
[ "$code" -ne 255 ] || code=1 # 255 is for the daemon's own ssh: that the source could not be reached
exit "$code"
