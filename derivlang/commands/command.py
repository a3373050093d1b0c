"""Commands. Each is a frozen dataclass, which gives the Python function, the options and the keys of a study's file.

    @dataclass(frozen=True)
    class TrainTokenizer(Command[dict[str, Any]], TextOptions):
        '''Train a tokenizer on the words of SOURCE.'''

        source: PathLike
        out: OptionalPath = setting(None, "Folder to write.", also="-o")
        vocab_size: int = setting(40_000, "Number of entries.", minimum=1, kw_only=True)

        def __call__(self) -> dict[str, Any]: ...

    tokenizer = function(TrainTokenizer, "tokenizer")     tokenizer("demo", vocab_size=0)   -> vocab_size: must be …
    command = command_line(TrainTokenizer, "train", …)    train demo --vocab-size 0         -> --vocab-size: must be …

Type checkers see the constructor that `dataclass` makes, with the settings of every base class; `function` hands it on.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeAlias, TypeVar

from derivlang.core.dependencies import check_dependencies
from derivlang.core.errors import UsageError, unknown
from derivlang.core.messages import errors_in_python, in_python
from derivlang.core.settings import Declared, Settings, declared, setting
from derivlang.display.bar import ProgressBar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result", covariant=True)
Kind = TypeVar("Kind")
if TYPE_CHECKING:
    from derivlang.pipeline import Pipeline

    Spec: TypeAlias = str | Pipeline
    Specs: TypeAlias = Spec | Sequence[Spec]
else:
    Spec, Specs = object, tuple[object, ...]


class Command(Settings, Generic[Result]):
    """Base class of commands. The docstring is the help page. Fields without a setting are arguments.

    given: the names of the fields that the user gave.
    """

    heading: ClassVar[str] = ""
    given: frozenset[str] = frozenset()

    def __call__(self) -> Result:
        """Run the command."""
        raise NotImplementedError

    def part(self, kind: Callable[..., Kind], **more: Any) -> Kind:
        """Return a dataclass with the fields that it has in common with the command. more: other fields."""
        own: Any = kind
        common = {field.name for field in fields(own)} & {field.name for field in fields(self)}  # type: ignore[arg-type]
        return kind(**{name: getattr(self, name) for name in common} | more)

    def path(self, name: str) -> Path | None:
        """Return a field that is a path; mypy takes one of a base class for what a user may give."""
        path: Path | None = getattr(self, name)
        return path

    def changed(self, *leave_out: str) -> dict[str, Any]:
        """Return the settings that the user gave other values than their defaults, but for some."""
        kind: type = type(self)
        changed = {}
        for name, one in declared(kind).items():
            value = getattr(self, name)
            if name in self.given and name not in leave_out and (one.is_open or value != one.default):
                changed[name] = value
        return changed

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the command of what a user gave. Raise UsageError for a wrong value, and for what does not fit."""
        kind: type = cls
        settings, source = declared(kind), values.get("source", "")
        if "source" not in settings and not isinstance(source, (str, os.PathLike)):
            raise UsageError(
                f"a source is a name or a path, not {type(source).__name__}",
                where="SOURCE",
                fix="write the rows to a file, such as .jsonl or .csv; derivlang.map_dataset derives a Dataset",
                id="bad-value",
            )
        made = cls(**values)
        given = {name for name in values if _is_given(settings.get(name), getattr(made, name))}
        needs = {one.where: one.needs for name, one in settings.items() if name in given}
        check_dependencies(needs, {flag for name in given for flag in _spellings(name, settings.get(name))})
        object.__setattr__(made, "given", frozenset(given))
        return made


def function(kind: Callable[Arguments, Command[Result]], name: str) -> Callable[Arguments, Result]:
    """Return the function of a command, which makes the command and runs it. Errors and warnings name arguments."""
    command: Any = kind
    signature = inspect.signature(command)
    arguments = arguments_of(command)

    def call(*places: Arguments.args, **values: Arguments.kwargs) -> Result:
        with errors_in_python(arguments):
            for wrong in values.keys() - signature.parameters.keys():
                raise unknown(f"argument of {name}", wrong, signature.parameters)
            with ProgressBar():
                result: Result = command.of(signature.bind(*places, **values).arguments)()
            return result

    told = "\n".join(f"{one.name}\n    {_help(one, arguments)}" for one in declared(command).values() if one.option)
    call.__name__ = call.__qualname__ = name
    about, result = str(inspect.getdoc(command)).partition("\n\n\b")[0], str(inspect.getdoc(command.__call__))
    call.__doc__ = f"{about}\n\n{result}\n\nRaise DerivlangError where the command fails.\n\n{told}"
    result_type = inspect.signature(command.__call__).return_annotation
    call.__signature__ = signature.replace(return_annotation=result_type)  # type: ignore[attr-defined]
    return call


def method(
    kind: Callable[Concatenate[Any, Arguments], Command[Result]], name: str
) -> Callable[Concatenate[Any, Arguments], Result]:
    """Return the function of a command as a method of its first argument."""
    return function(kind, name)


def arguments_of(kind: type) -> dict[str, str]:
    """Return the argument that stands for each option, as messages write it: --vocab-size -> vocab_size=."""
    named: dict[str, str] = {}
    for field in fields(kind):
        one = declared(kind).get(field.name)
        shown = f"{field.name}={'True' if one.kind is bool else ''}" if one else field.name
        named |= dict.fromkeys(_spellings(field.name, one), shown)
    return named


def _spellings(name: str, one: Declared | None) -> tuple[str, ...]:
    """Return what messages call a field: its options, or the name of an argument in capitals."""
    return (name.upper(),) if one is None else (one.where, *one.also)


def _help(one: Declared, arguments: Mapping[str, str]) -> str:
    return in_python(one.help_text, arguments) + (f" [default: {one.unset}]" if one.unset else "")


def _is_given(one: Declared | None, value: Any) -> bool:
    """Return whether a value would be typed on a command line: neither None nor a flag that is False."""
    return value is not None and (value is not False or (one is not None and one.is_open))


def transforms(help: str, default: Any = None, **more: Any) -> Any:
    """Return the setting of the transforms, `--t`. more: as of `setting`."""
    return setting(default, help, option="--t", also="-t, --transform", **more)


def pipeline_of(spec: Spec) -> Pipeline:
    """Return the pipeline of a spec."""
    from derivlang.pipeline import Pipeline

    return spec if isinstance(spec, Pipeline) else Pipeline.parse(spec)
