"""The images of single words, where a transform chooses one of several images, or changes words by their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, lengths_of
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch, reordered, used_types
from derivlang.core.keys import Draws
from derivlang.core.lexicon import Lexicon, TypeMap, chooses, special_types
from derivlang.core.order import Order
from derivlang.transforms.base import Transform, check_layers, plug_in_errors, steps_of
from derivlang.transforms.forms import Forms


def choose_images(
    streams: Sequence[tuple[Transform, Draws]],
    lexicon: Lexicon,
    batch: Batch,
    order_before: Callable[[int], Order | None],
    counts: Counter[str] | None,
) -> tuple[Int32, pa.Array]:
    """Return the image of each source word, int32[N] codes, and the types they index. Words of one type may differ.

    streams: the transforms with their draws. order_before: returns the order of the batch under the transforms before
    one of them, None without an order. counts: where to count the words that got another image than the first.

    "the cat the dog" has the types the, cat, dog and the words 0 1 0 2. A dictionary with cat: chat, minet and
    dog: chien has the images the | cat chat minet | dog chien, that is, offsets [0, 1, 4, 6]. So the words have
    1 3 1 2 images. The choices 0 2 0 1 take the strings 0 + 0, 1 + 2, 0 + 0, 4 + 1: "the minet the chien", which are
    the words 0 1 0 2 of the types the, minet, chien.
    """
    words, types = batch.words, batch.types
    so_far: list[TypeMap] = []
    steps = steps_of([transform for transform, _ in streams], lexicon)
    for place, ((transform, draws), step) in enumerate(zip(streams, steps, strict=True)):
        if step is None:
            continue
        if transform.has_forms:
            words, types = _changed(transform, batch, Forms(words, types), Lexicon(tuple(so_far)), draws)
            continue
        so_far.append(step)
        if not chooses(step):
            types = step.apply(types)
            continue
        check_layers(transform, batch)
        type_images = step.images(types)
        images = lengths_of(type_images.offsets).astype(np.int32)[words]
        order = order_before(place)
        if order is not None:  # choices are drawn by the position that a word has in the order so far
            kept = order.index >= 0
            seen = np.where(kept, images[np.where(kept, order.index, 0)], 1).astype(np.int32)
            image_number = np.zeros(len(words), np.int32)
            with plug_in_errors(transform, transform.choices):
                image_number[order.index[kept]] = transform.choices(
                    reordered(batch, order, transform.needs), seen, draws
                )[kept]
        else:
            with plug_in_errors(transform, transform.choices):
                image_number = transform.choices(batch, images, draws)
        if counts is not None:
            counts[f"{transform.name}-replaced"] += int((image_number > 0).sum())
        used, words = used_types(
            (type_images.offsets[:-1][words] + image_number).astype(np.int32), len(type_images.strings)
        )
        types = type_images.strings.take(to_arrow(used))
    return words, types


def _changed(transform: Transform, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
    """Return the forms of words under a transform that changes them by their place, with the types that occur.

    Special tokens stay. The new types follow the old ones, so that a word may keep its old form.
    """
    check_layers(transform, batch)
    with plug_in_errors(transform, transform.forms):
        words, types = transform.forms(batch, forms, before, draws)
    words = np.where(special_types(batch.types)[batch.words], forms.words, words).astype(np.int32)
    used, words = used_types(words, len(types))
    return Forms(words, types.take(to_arrow(used)))
