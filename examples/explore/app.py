"""The page of `derivlang explore` as a hosted Space: the platform runs this file.

No parameter that names a file is offered, so visitors cannot read files of the server.
"""

from derivlang.explore.app import build, launching

build(files=False).launch(**launching())
