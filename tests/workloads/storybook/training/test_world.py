"""The world says exactly what it draws, and always draws the same."""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from fixtures.workloads.storybook.training.captions import caption, noun, plain_caption
from fixtures.workloads.storybook.training.drawing import COLOURS
from fixtures.workloads.storybook.training.mounts import MOUNTS
from fixtures.workloads.storybook.training.riders import RIDERS
from fixtures.workloads.storybook.training.scenery import PLACES
from fixtures.workloads.storybook.training.things import BOATS, GROUND_THINGS, SKY_THINGS
from fixtures.workloads.storybook.training.world import Figure, Scene, render, scene_number

SCENES = [scene_number(7, index) for index in range(300)]
USUAL_COLOURS = {
    name: kind.usual_colour
    for kinds in (RIDERS, MOUNTS, GROUND_THINGS, BOATS, SKY_THINGS)
    for name, kind in kinds.items()
}


def shown_figures(scene: Scene) -> tuple[Figure, ...]:
    return (*scene.figures, scene.sky_thing) if scene.has_sky_thing else scene.figures


def test_a_scene_depends_on_its_number_alone() -> None:
    assert [scene_number(7, index) for index in range(300)] == SCENES
    assert scene_number(8, 0) != SCENES[0]


def test_an_image_is_the_same_whenever_it_is_drawn() -> None:
    first, second = (hashlib.sha256(render(SCENES[3]).tobytes()).hexdigest() for _ in range(2))
    assert first == second


def test_the_plain_caption_names_every_figure_in_order() -> None:
    for scene in SCENES:
        text = plain_caption(scene)
        positions = [text.index(noun(figure)) for figure in shown_figures(scene)]
        assert positions == sorted(positions)
        assert PLACES[scene.surroundings.place] in text


def test_no_caption_names_what_is_not_in_the_image() -> None:
    names = set(USUAL_COLOURS)
    for number, scene in enumerate(SCENES):
        text = caption(scene, random.Random(number))
        for name in names - {figure.name for figure in shown_figures(scene)}:
            assert not re.search(rf"\b{name}\b", text), (text, name)


def test_no_caption_names_a_colour_that_no_figure_has() -> None:
    for number, scene in enumerate(SCENES):
        text = caption(scene, random.Random(number))
        said = {colour for colour in COLOURS if re.search(rf"\b{colour}\b", text)}
        assert said <= {figure.colour for figure in shown_figures(scene)}


def test_a_colour_is_left_unsaid_only_where_it_is_the_usual_one() -> None:
    for scene in SCENES:
        for figure in shown_figures(scene):
            assert figure.colour_is_said or figure.colour == USUAL_COLOURS[figure.name]


def test_no_caption_tells_a_wrong_place_or_hour() -> None:
    for number, scene in enumerate(SCENES):
        text = caption(scene, random.Random(number))
        for place, words in PLACES.items():
            assert words not in text or place == scene.surroundings.place
        for hour in ("night", "sunset"):
            assert hour not in text or hour == scene.surroundings.hour


def test_left_and_right_in_the_caption_are_left_and_right_in_the_image() -> None:
    scene = next(s for s in SCENES if s.composition == "pair" and not s.thing_is_left)
    thing = Figure("house", "pink", colour_is_said=True)
    scene = replace(scene, thing=thing, rider=replace(scene.rider, name="robot", colour="black"))
    scene = replace(scene, surroundings=replace(scene.surroundings, hour="day"))
    assert " to the left of a pink house" in plain_caption(scene)
    assert pink_pixels(scene, right=True) > 200 > pink_pixels(scene, right=False)


def pink_pixels(scene: Scene, *, right: bool) -> int:
    image = np.asarray(render(scene))
    return pixels_of("pink", image[:, 64:] if right else image[:, :64])


def pixels_of(colour: str, image: NDArray[np.uint8]) -> int:
    return int((image == COLOURS[colour]).all(axis=-1).sum())


@pytest.mark.parametrize("colour", COLOURS)
def test_the_main_colour_is_in_the_image(colour: str) -> None:
    scene = next(s for s in SCENES if s.composition == "thing" and s.surroundings.hour == "day")
    scene = replace(scene, thing=Figure("house", colour, colour_is_said=True))
    assert pixels_of(colour, np.asarray(render(scene))) > 300
