"""What machines are expected to cost, and what a decision adds to that: the one place where rental is worked out.

A machine of p a second (its price and fees), charged for since s in periods of g with a minimum M, that is given back
at T costs

    B(T) = p · max(M, ⌈(T − s) ÷ g⌉ · g).

T is the latest end of what runs on it, which is stated, learned or assumed, and now at the earliest; a service has no
end. What is paid already is paid whatever is decided: only differences of B count. Of 0.36 an hour, charged for since
12:00 by the minute, with work until 12:10: 0.06. A job until 12:30 put on it adds B(12:30) − B(12:10) = 0.12, one
until 12:09 nothing. Billed by the hour neither adds anything.

- `bill`: B of one machine, exactly, and of many at once; for how long one is paid.
- `rows`: B of the machines that are there, and which of them are given back at all once they are empty.
- `new_machines`: what is bought: start, rounding, and the longest of the work it is bought for.
- `lengthening`: placing: what a job adds to a machine that is there, against one of its own.
- `moving`: emptying a machine: what that saves, less what moved work adds elsewhere and does again.
- `replacing`: another machine instead: what that saves while both are paid, and whether the waste so far is worth it.

Amounts are billionths of the currency an hour × seconds, as in the sandbox's books: whole numbers, so that what a plan
adds is the sum of what its decisions add.
"""
