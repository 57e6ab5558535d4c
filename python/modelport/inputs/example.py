"""Example inputs of a model: made by rule, and tried where a rule leaves a choice."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..base.errors import problem
from . import placeholders, rules
from .making import Making, Sizes, Subject
from .trial import ignores, refusal, settle

_LENGTHS = (7, 11, 13, 17, 19, 23)
_TRIES = 24
_MASKS = ("pixel_mask", "image_sizes")  # signatures have them whether or not the model looks at them
_BY_HAND = "pass the inputs yourself: --inputs FILE on the command line, a dict for model(**inputs) in Python"


class ExampleInputs(dict[str, Any]):
    """The inputs as a dict; `sizes`, `plan` and `seed` say how they were made."""

    def __init__(self, inputs: dict[str, Any], making: Making):
        super().__init__(inputs)
        self.sizes, self.plan, self.seed, self.subject = making.sizes, making.plan, making.seed, making.subject
        self.counts = making.counts


def example_inputs(
    model_or_class: Any,
    config: Any = None,
    *,
    batch: int = 2,
    sequence: int | None = None,
    preprocessor: dict[str, Any] | None = None,
    task: str | None = None,
    image_size: int | None = None,
    seed: int = 0,
) -> ExampleInputs:
    """Inputs for `model(**inputs)`, from the forward signature, the config and the preprocessor config.

    A class needs its config; a config alone will do where it names its architecture or `task` does. The model runs only
    where names and numbers leave a choice, such as the number of tokens that stand for an image. With `image_size`
    images are squares of that side."""
    subject = subject_of(model_or_class, config, task, preprocessor)
    subject.image_size = image_size
    lacking = rules.without_rule(subject)
    if lacking:
        what = f"no rule makes the inputs {', '.join(lacking)} of {subject.cls.__name__}"
        raise problem("E0310", what, _BY_HAND)
    taken = subject.facts.numbers()
    if sequence is None:
        sequence = next((length for length in _LENGTHS if length not in taken), _LENGTHS[0])
    sizes = Sizes(batch=batch, sequence=sequence, target=max(sequence - 2, 1))
    plans = list(itertools.islice(_plans(rules.options(subject)), _TRIES))
    inputs = _first_that_runs(subject, [(sizes, plan) for plan in plans], seed, trusted=len(plans) == 1)
    for name in _MASKS:
        if name in inputs and not subject.parameters[name] and ignores(subject, inputs, name):
            del inputs[name]
    return inputs


def further_sizes(inputs: dict[str, Any], model: Any) -> list[ExampleInputs]:
    """The same kinds of inputs at batch 1, at a longer size and at an odd one.

    An axis that the model itself fixes keeps its size. Inputs may be made by hand if rules make the same names."""
    if not isinstance(inputs, ExampleInputs):
        inputs = _recognised(inputs, model)
    subject = subject_of(model, getattr(model, "config", None) or inputs.subject.config, None)
    subject.facts = inputs.subject.facts
    first, plan = inputs.sizes, inputs.plan
    longer = replace(
        first,
        batch=first.batch + 1,
        sequence=2 * first.sequence + 3,
        target=first.target + 4,
        regions=first.regions + 2,
        rows=first.rows + 1,
        columns=first.columns + 2,
        frames=first.frames + 2,
        sound=1.5 * first.sound,
    )
    odd = replace(
        first,
        batch=first.batch + 1,
        sequence=first.sequence + 3 + first.sequence % 2,
        target=first.target + 1,
        regions=first.regions - 1,
        rows=first.rows + 1,
        columns=first.columns - 1,
        odd=5,
        sound=1.203 * first.sound,
    )
    alone = Making(subject, replace(first, batch=1), plan, inputs.seed + 1, dict(inputs.counts))
    found = [ExampleInputs(_named(rules.make(alone), set(inputs)), alone)]
    settle(subject, found[0])
    for number, sizes in enumerate((longer, odd), inputs.seed + 2):
        tries = [(size, plan) for size in _ladder(sizes, first)]
        found.append(_first_that_runs(subject, tries, number, trusted=not plan, names=set(inputs)))
    return found


def _named(inputs: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if name in names}


def subject_of(
    model_or_class: Any, config: Any, task: str | None, preprocessor: dict[str, Any] | None = None
) -> Subject:
    """The model, class or configuration that inputs are for."""
    from transformers import PreTrainedConfig

    if isinstance(model_or_class, PreTrainedConfig):
        from .task import model_class

        model_or_class, config = model_class(model_or_class, task), model_or_class
    if config is None and isinstance(model_or_class, type):
        raise problem(
            "E0310",
            f"the inputs of the class {model_or_class.__name__} depend on its config",
            "pass it: example_inputs(cls, config)",
        )
    return Subject(model_or_class, config, preprocessor)


def _plans(options: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """All combinations, the likeliest of each choice first."""
    for chosen in itertools.product(*options.values()):
        yield dict(zip(options, chosen, strict=True))


def _ladder(sizes: Sizes, first: Sizes) -> list[Sizes]:
    """Sizes, and what is left of them for models that fix some: no odd pixels, fewer frames, the image as it was."""
    steps = [
        sizes,
        replace(sizes, odd=0),
        replace(sizes, odd=0, frames=first.frames),
        replace(sizes, odd=0, frames=first.frames, rows=first.rows, columns=first.columns),
        replace(first, batch=sizes.batch, sequence=sizes.sequence, target=sizes.target),
        replace(first, batch=sizes.batch),
    ]
    return list(dict.fromkeys(steps))


def _first_that_runs(
    subject: Subject,
    tries: Iterable[tuple[Sizes, dict[str, Any]]],
    seed: int,
    *,
    trusted: bool,
    names: set[str] | None = None,
) -> ExampleInputs:
    """The first making that the model accepts; without a choice it is not asked."""
    first: Exception | None = None  # the likeliest making comes first, so its refusal says most
    for sizes, plan in tries:
        counts: dict[str, int] = {}
        for _ in range(3):  # a refusal may say how many placeholders it wants
            making = Making(subject, sizes, plan, seed, counts)
            inputs = rules.make(making)
            if names is not None:
                inputs = _named(inputs, names)
            settle(subject, inputs)
            if trusted and not counts:
                return ExampleInputs(inputs, making)
            error = refusal(subject, inputs)
            if error is None:
                return ExampleInputs(inputs, making)
            first = first or error
            if not placeholders.told(error, making):
                break
    raise problem(
        "E0310",
        f"{subject.cls.__name__} takes none of the inputs that the rules make: {type(first).__name__}: {first}",
        _BY_HAND,
    ) from first


def _recognised(inputs: dict[str, Any], model: Any) -> ExampleInputs:
    """Inputs made by hand: the plan whose making has the same names and ranks."""
    batch = next((v.shape[0] for v in inputs.values() if getattr(v, "ndim", 0)), 2)
    ids: Any = inputs.get("input_ids")
    sequence = ids.shape[1] if getattr(ids, "ndim", 0) == 2 else None
    made = example_inputs(model, batch=max(batch, 2), sequence=sequence)
    missing = [name for name in inputs if name not in made]
    if missing:
        what = f"no rule makes the inputs {', '.join(missing)} at another size"
        raise problem("E0310", what, "pass the further inputs yourself")
    for name in set(made) - set(inputs):
        del made[name]
    return made
