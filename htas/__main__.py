"""`python -m htas`: the same as `htas`."""

from htas.cli.main import main

if __name__ == "__main__":
    main()
