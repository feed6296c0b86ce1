"""Planning and execution broken one place at a time: does a test notice?

The mutations are cosmic-ray's. What is added is what its sessions lack: a random sample with a seed, and for each
mutant the tests that run its line (coverage contexts) instead of one command for all, so that a mutant costs seconds
and not the minutes of the whole suite. mutmut 3 finds tests by function, but takes neither a sample nor a seed, and
writes every mutant of a package into one copy of it, which all tests then run through.
"""
