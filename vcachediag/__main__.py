"""`python -m vcachediag`."""

from vcachediag.cli.app import main

main()
