"""The page of `derivlang explore`, built with Gradio: controls at the top, a drawing below.

    build().launch()             as a hosted Space runs it (examples/explore/app.py)
    serve(folder, port=7860)     as the command runs it

Nothing leaves the machine: no analytics, no fonts from elsewhere, and a header that forbids the browser any other
address. Nothing is left on it: uploads are refused, and what Gradio writes is in a folder that goes with the process.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from functools import cache, partial
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, UsageError
from derivlang.explore.controls import Control, controls_of, offered, spec_of, steps_of

SENTENCES = (
    "Welcome to ACL .",
    "The black cat that we saw yesterday sleeps on the old sofa .",
    "Ada Lovelace wrote the first program in London .",
    "Why did they leave so early ?",
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LONGEST = 2000  # characters of a text
_NO_ADDRESS = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:"
)
_SPLITTERS = (("tokenised: words between spaces", "space"), ("raw text: spaCy's tokenizer", "spacy"))
_CSS = """
.gradio-container { max-width: 90rem !important; }
@media (max-width: 500px) { /* a phone's width is for the words */
  .gradio-container .app { padding: .75rem !important; }
  :is(#drawing, #row-drawing) .html-container { padding: 0 !important; }
}
.dl-error.dl-error { color: #b00020; white-space: pre-wrap; } /* twice: before Gradio's colour of all prose */
.dark .dl-error.dl-error { color: #ff8a8a; }
"""


def derived(text: str, spec: str, words: str, *, files: bool = True) -> tuple[str, str]:
    """Return (a drawing of a text under a spec, the command that prints the derived text), or a message and "".

    files: whether the spec may name files. A page for visitors has False, whatever its controls offer: a request need
    not come from them.
    """
    from derivlang.api import derive, view
    from derivlang.core.spec import any_file, no_file
    from derivlang.pipeline import Pipeline

    if max(len(text), len(spec)) > _LONGEST:
        return _message(f"the text or the spec has more than {_LONGEST:,} characters"), ""
    if not spec:
        return _message("choose a transform"), ""
    line = " ".join(text.split())
    try:
        pipeline = Pipeline.parse(spec, files=any_file if files else no_file)
        drawing = view(derive(line, pipeline, words=words))._repr_html_()  # type: ignore[arg-type]
    except DerivlangError as error:
        return _message(str(error)), ""
    option = "" if words == "spacy" else f" --words {words}"
    end = "-- " if line.startswith("-") else ""  # what follows is not an option
    command = f"derivlang derive --t {shlex.quote(spec)}{option} {end}{shlex.quote(line)}"
    return drawing, command if line != "-" else ""  # which reads standard input


def shown(folder: Path, split: str, row: int) -> str:
    """Return a drawing of a row of a set, or a message."""
    from derivlang.display.rows import rows_of_set, set_of
    from derivlang.display.view import View

    try:
        return View(rows_of_set(*set_of(folder, split), int(row or 0), 1))._repr_html_()
    except DerivlangError as error:
        return _message(str(error))


def statistics(folder: Path, split: str) -> list[list[str]]:
    """Return the statistics of a split as rows of a table, or a row with a message."""
    from derivlang.distance.measure import measure_set
    from derivlang.distance.reordering import table_of

    try:
        return [list(row) for row in table_of(measure_set(folder, split, 0))]
    except DerivlangError as error:
        return [["error", str(error)]]


def build(folder: Path | None = None, *, files: bool = True) -> Any:
    """Return the page, a `gradio.Blocks`. folder: a derived set to show, too. files: whether a spec may name files.

    Raises UsageError without gradio, StoreError for a damaged set.
    """
    gr = _gradio()
    with gr.Blocks(title="derivlang", analytics_enabled=False) as page:
        gr.Markdown("# derivlang\nA sentence, and what transforms make of it.")
        with gr.Tab("Sentence"):
            _sentence(gr, files=files)
        if folder is not None:
            with gr.Tab(f"Set {folder.name}"):
                _set(gr, folder)
    return page


def serve(folder: Path | None = None, *, host: str = "127.0.0.1", port: int | None = None, browse: bool = False) -> Any:
    """Start the page and return (the running page, its address). Raises UsageError as `build`, and for a taken port.

    Only on an address of this machine (127.0.0.1, ::1, localhost) may a spec name files. There a request must name one
    of them, too: a page from elsewhere whose host's name was pointed at this machine gets no answer.
    """
    page = build(folder, files=_is_loopback(host))
    options = launching(LOOPBACK if _is_loopback(host) else ("*",))
    try:
        _, address, _ = page.launch(
            server_name=host, server_port=port, inbrowser=browse, prevent_thread_lock=True, quiet=True, **options
        )
    except OSError as error:
        raise UsageError(
            f"cannot serve on port {port}: {error}", where="--port", fix="choose another port", id="port"
        ) from None
    return page, address


def launching(hosts: Sequence[str] = ("*",)) -> dict[str, Any]:
    """Return the arguments of `launch` that keep everything on the machine. hosts: names of it in requests."""
    gr = _gradio()
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    fonts = ["system-ui", "sans-serif"]
    return {
        "share": False,
        "ssr_mode": False,
        "pwa": False,
        "footer_links": [],
        "theme": gr.themes.Default(font=fonts, font_mono=["ui-monospace", "monospace"]).set(
            block_info_text_color="*neutral_600"  # as dark on white as small text has to be (WCAG AA: 4.5 to 1)
        ),
        "head": f"<style>{_CSS}</style>",  # the argument css reaches only the components
        "app_kwargs": {
            "middleware": [Middleware(TrustedHostMiddleware, allowed_hosts=hosts), Middleware(OwnAddressOnly)]
        },
    }


class OwnAddressOnly:
    """ASGI middleware: no uploads, and a header that lets the browser load only from this server.

    The header is Content-Security-Policy. The page has no place for a file, but Gradio takes files of any request.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on; add the header to its answer."""
        from starlette.responses import PlainTextResponse

        if scope.get("path", "").endswith("/upload"):
            await PlainTextResponse("this page takes no files", status_code=403)(scope, receive, send)
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", _NO_ADDRESS.encode())]
            await send(message)

        await self.app(scope, receive, sending)


def _is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"


def _gradio() -> Any:
    """Return the module `gradio`, without analytics and with a folder for its files that goes with the process.

    Raises UsageError if it is not installed.
    """
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ["GRADIO_TEMP_DIR"] = _files_of_gradio().name
    try:
        import gradio
    except ImportError:
        raise UsageError("explore needs gradio", fix="pip install 'derivlang[explore]'", id="missing-package") from None
    return gradio


@cache
def _files_of_gradio() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="derivlang-explore-")


def _sentence(gr: Any, *, files: bool) -> None:
    with gr.Row():
        text = gr.Textbox(SENTENCES[0], label="Sentence", lines=2, max_length=_LONGEST, elem_id="text", **_column(3))
        words = gr.Dropdown(list(_SPLITTERS), value="space", label="Words", elem_id="words", **_column(1))
    gr.Examples([[sentence] for sentence in SENTENCES], [text], label="Sentences to pick")
    steps = gr.Dropdown(
        offered(files=files),
        value=["trans", "inv"],
        multiselect=True,
        label="Transforms",
        info="Applied in the order in which you choose them.",
        elem_id="steps",
    )
    values = gr.State({})  # of the parameters, as they are now
    typed = gr.State((0, {}))  # the values that the controls begin with, and how often a spec has been typed
    copied = {"buttons": ["copy"], "render": False}
    spec = gr.Textbox(
        "trans,inv", label="Spec, to type or paste", max_length=_LONGEST, interactive=True, elem_id="spec",
        **_column(1), **copied,
    )  # fmt: skip
    command = gr.Textbox(label="Command", interactive=False, elem_id="command", **_column(2), **copied)

    # When the page is loaded, when the steps change, and when a spec was typed.
    @gr.render(inputs=[steps, typed], show_progress="hidden")  # type: ignore[untyped-decorator, unused-ignore]
    def parameters(chosen: list[str], begun: tuple[int, dict[Any, Any]]) -> None:
        for number, name in enumerate(chosen or []):
            controls = controls_of(name, files=files)
            with gr.Accordion(f"Parameters of {name}", open=False, elem_id=f"step-{number}-{name}"), gr.Row():
                for control in controls:
                    key = number, control.name
                    widget = _widget(gr, control, f"{name}-{control.name}", begun[1].get(key, control.default))
                    widget.input(
                        lambda value, kept, chosen, key=key: _changed(kept, chosen, key, value),
                        [widget, values, steps],
                        [values, spec],
                        show_progress="hidden",
                    )

    def chosen_anew(chosen: list[str]) -> tuple[dict[Any, Any], tuple[int, dict[Any, Any]], str]:
        return {}, (0, {}), spec_of(chosen or [], {})

    def typed_anew(text: str, chosen: list[str], kept: dict[Any, Any], begun: tuple[int, dict[Any, Any]]) -> Any:
        read = steps_of(text, files=files)
        if read is None or read == (chosen, kept):
            return gr.skip(), gr.skip(), gr.skip()  # the controls stay; the drawing says what is wrong
        return *read, (begun[0] + 1, read[1])

    def cleared(chosen: list[str]) -> Any:
        return (gr.skip(), gr.skip(), gr.skip()) if chosen else chosen_anew(chosen)

    # `input` is what a person does: with `change`, a typed spec would come back from the steps that it sets. The button
    # that clears all steps is only a change; every typed spec has a step.
    steps.input(chosen_anew, [steps], [values, typed, spec], show_progress="hidden")
    steps.change(cleared, [steps], [values, typed, spec], show_progress="hidden")
    spec.input(
        typed_anew, [spec, steps, values, typed], [steps, values, typed],
        show_progress="hidden", trigger_mode="always_last",
    )  # fmt: skip
    with gr.Row():
        spec.render()
        command.render()
    drawing = gr.HTML(elem_id="drawing")
    # Without triggers: when the page is loaded, and when an input changes.
    gr.on(
        None,
        partial(derived, files=files),
        [text, spec, words],
        [drawing, command],
        show_progress="hidden",
        trigger_mode="always_last",
        api_name="derive",
    )


def _column(scale: int) -> dict[str, int]:
    """Return the arguments of a component of a row: its share of the width, and the width that a phone gives whole."""
    return {"scale": scale, "min_width": 240}


def _changed(kept: dict[Any, Any], steps: list[str], key: tuple[int, str], value: Any) -> tuple[dict[Any, Any], str]:
    values = {**kept, key: value}
    return values, spec_of(steps, values)


def _widget(gr: Any, control: Control, name: str, value: Any) -> Any:
    # interactive: Gradio would show the components of a render as read-only.
    facts = {"label": control.name, "info": control.help, "value": value, "elem_id": name}
    facts |= {"interactive": True, **_column(1)}
    if control.kind == "choice":
        return gr.Dropdown(list(dict.fromkeys([*control.choices, value])), **facts)  # a typed spec may have another
    if control.kind == "switch":
        return gr.Checkbox(**facts)
    if control.kind == "slider":
        return gr.Slider(control.low, control.high, step=1, **facts)
    if control.kind == "text":
        return gr.Textbox(**facts)
    steps = {"precision": 0} if control.kind == "whole" else {"step": 0.05}
    return gr.Number(minimum=control.low, maximum=control.high, **steps, **facts)


def _set(gr: Any, folder: Path) -> None:
    from derivlang.display.rows import set_of

    derived_set, first = set_of(folder, None)
    gr.Markdown(f"`{derived_set.pipeline}` of {derived_set.manifest['source']['name']}")
    with gr.Row():
        split = gr.Dropdown(derived_set.splits, value=first, label="Split", elem_id="split")
        row = gr.Number(0, label="Row", precision=0, minimum=0, elem_id="row")
    drawing = gr.HTML(elem_id="row-drawing")
    table = gr.Dataframe(
        headers=["statistic", "value"],
        column_widths=["65%", "35%"],
        wrap=True,
        max_height=1000,
        interactive=False,
        elem_id="statistics",
    )

    def of_row(name: str, number: int) -> str:
        return shown(folder, name, number)

    def of_split(name: str) -> list[list[str]]:
        return statistics(folder, name)

    gr.on(None, of_row, [split, row], drawing, show_progress="hidden", api_name="row")
    gr.on(None, of_split, split, table, api_name="statistics")


def _message(text: str) -> str:
    return f'<p class="dl-error" role="alert">{escape(text)}</p>'
