"""Settings as keyword arguments of Python functions, with the names, defaults and help of the options.

    @takes(MakeOptions, SourceRequest)
    def make(source, spec, out, **options): ...

    make("a.csv", "inv", "out", workers=2, text_column="review")
        ->  options {"workers": 2, "text_column": ("review",)}

The decorator checks the names, and turns values into command-line values: a path may be a text, a list of names a
text with commas. `inspect.signature` and `help` show every argument, so that editors and notebooks complete them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from numbers import Number
from typing import Any, TypeVar

from derivlang.core.dependencies import check_dependencies
from derivlang.core.errors import unknown
from derivlang.core.in_python import errors_in_python, in_python
from derivlang.core.settings import Declared, declared

Function = TypeVar("Function", bound=Callable[..., Any])
_NAMED = {"--t": "spec=", "-o": "out="}  # arguments with other names than their options


def keyword_of(one: Declared) -> str:
    """Return the argument of a setting: `dict_coverage` for --dict-coverage."""
    return _NAMED.get(str(one.option), str(one.option)).strip("-=").replace("-", "_")


def takes(*kinds: type, without: Collection[str] = ()) -> Callable[[Function], Function]:
    """Return a decorator for a function whose `**options` are the settings of these dataclasses.

    The function gets them by `Declared.key`, as a command does. without: fields that are not arguments. Errors name
    arguments in place of options. The function raises UsageError for an unknown argument.
    """
    every = [one for kind in kinds for one in declared(kind).values() if one.option and one.name not in without]
    by_keyword = {keyword_of(one): one for one in every}
    also = {one.also.removeprefix("--").replace("-", "_"): one for one in every if one.also}

    def add(function: Function) -> Function:
        own = inspect.signature(function)
        named = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        names = {one.name for one in named}
        flags = {name for name, one in by_keyword.items() if one.kind is bool}
        flags |= {one.name for one in named if isinstance(one.default, bool)}
        arguments = _NAMED | {
            f"--{name.replace('_', '-')}": f"{name}={'True' if name in flags else ''}" for name in (*names, *by_keyword)
        }

        @wraps(function)
        def called(*places: Any, **given: Any) -> Any:
            own_given = {name: given[name] for name in names & given.keys()}
            options, settings = {}, {}
            for name in given.keys() - names:
                one = by_keyword.get(name) or also.get(name)
                if one is None:
                    raise unknown(f"argument of {function.__name__}", name, [*names, *by_keyword])
                options[one.key] = _value(one, given[name])
                if _is_given(one, options[one.key]):
                    settings[str(one.option)] = one.needs
            with errors_in_python(arguments, names):
                check_dependencies(settings, _options_of(own.bind_partial(*places, **own_given).arguments))
                return function(*places, **own_given, **options)

        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=_hint(one))
            for name, one in by_keyword.items()
        ]
        called.__signature__ = own.replace(parameters=[*named, *more])  # type: ignore[attr-defined]
        called.__doc__ = f"{inspect.getdoc(function)}\n\n{_help(by_keyword, arguments)}".rstrip()
        return called  # type: ignore[return-value]

    return add


def _value(one: Declared, value: Any) -> Any:
    """Return the value of an argument as the command line gives it."""
    if value is None:
        return None
    if one.kind is tuple:
        several = [value] if isinstance(value, str) or hasattr(value, "__fspath__") else list(value)
        return ",".join(map(str, several)) if one.commas else tuple(map(one.item, several))
    if one.kind is str and not isinstance(value, bool) and (isinstance(value, Number) or hasattr(value, "__fspath__")):
        return str(value)  # a percentage may be a number, a name may be a path
    return one.kind(value) if _is_path(one) and isinstance(value, str) else value


def _is_given(one: Declared, value: Any) -> bool:
    """Return whether an argument would be typed on a command line: neither None nor a flag that is False."""
    return value is not None and (value is not False or one.is_open)


def _options_of(arguments: Mapping[str, Any]) -> set[str]:
    """Return the options, or the names of arguments of the command, that some arguments of the function stand for."""
    given = {name for name, value in arguments.items() if value is not None and value is not False}
    named = {option for option, argument in _NAMED.items() if argument.removesuffix("=") in given}
    return named | {f"--{name.replace('_', '-')}" for name in given} | {name.upper() for name in given}


def _is_path(one: Declared) -> bool:
    return hasattr(one.kind, "__fspath__")


def _hint(one: Declared) -> str:
    name = " | ".join(map(repr, one.choices)) or ("Path | str" if _is_path(one) else one.kind.__name__)
    return f"{name} | None" if one.optional else name


def _help(by_keyword: Mapping[str, Declared], arguments: Mapping[str, str]) -> str:
    """Return the help of all arguments, as a list of definitions."""
    lines = [
        f"{name}\n    {in_python(one.help_text, arguments)}" + (f" [default: {one.unset}]" if one.unset else "")
        for name, one in by_keyword.items()
    ]
    return "\n".join(lines)
