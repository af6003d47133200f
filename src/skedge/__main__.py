"""`python -m skedge`."""

import sys

from skedge.cli.main import main

sys.exit(main())
