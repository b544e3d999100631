"""Image files of every kind become the right bytes; what Pillow and torchvision say is right."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from hardcorenas.errors import DataError
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.data.images import read_all, read_image, read_size

prepare_torchvision()
from torchvision.transforms import v2  # noqa: E402


def saved(tmp_path, image, name="x.png", **options):
    image.save(tmp_path / name, **options)
    return tmp_path / name


def colour_of(path, channels=3):
    """Return the one colour of an image of one colour."""
    colours = np.unique(read_image(path, channels=channels, side=4).reshape(channels, -1), axis=1)
    assert colours.shape[1] == 1
    return tuple(colours[:, 0].tolist())


def palette(transparency=None):
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 0, 200, 100, 50])
    if transparency is not None:
        image.info["transparency"] = transparency
    return image


@pytest.mark.parametrize(
    ("image", "rgb", "grey"),
    [
        (Image.new("RGB", (8, 8), (200, 100, 50)), (200, 100, 50), 124),
        (Image.new("L", (8, 8), 77), (77, 77, 77), 77),
        (Image.new("1", (8, 8), 1), (255, 255, 255), 255),
        (palette(), (200, 100, 50), 124),
        (palette(transparency=1), (255, 255, 255), 255),
        (palette(transparency=bytes([255, 0])), (255, 255, 255), 255),
        (Image.new("RGBA", (8, 8), (200, 100, 50, 0)), (255, 255, 255), 255),
        (Image.new("RGBA", (8, 8), (200, 100, 50, 255)), (200, 100, 50), 124),
        (Image.new("RGBA", (8, 8), (0, 0, 0, 51)), (204, 204, 204), 204),
        (Image.new("LA", (8, 8), (100, 0)), (255, 255, 255), 255),
        (Image.fromarray(np.full((8, 8), 0xFFFF, np.uint16)), (255, 255, 255), 255),
        (Image.fromarray(np.full((8, 8), 100 * 257, np.uint16)), (100, 100, 100), 100),
        (Image.fromarray(np.full((8, 8), 1000, np.uint16)), (4, 4, 4), 4),
    ],
)
def test_every_mode(tmp_path, image, rgb, grey):
    path = saved(tmp_path, image)
    assert colour_of(path) == rgb
    assert colour_of(path, channels=1) == (grey,)


def test_other_formats(tmp_path):
    cmyk = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    assert colour_of(saved(tmp_path, cmyk, "x.tif")) == (255, 0, 0)
    big_endian = tmp_path / "x.pgm"
    big_endian.write_bytes(b"P5 8 8 65535\n" + np.full(64, 100 * 257, ">u2").tobytes())
    assert colour_of(big_endian, channels=1) == (100,)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(tmp_path, orientation):
    # Orientation k is undone by the transposition that the standard names for it.
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = orientation
    path = saved(tmp_path, image, exif=exif)
    upright = image.transpose(undo[orientation]) if orientation in undo else image
    found = read_image(path, channels=3, side=16)
    np.testing.assert_array_equal(found.transpose(1, 2, 0), np.asarray(upright))


@pytest.mark.parametrize("size", [(100, 80), (80, 100), (64, 64), (20, 30)])
def test_resizing_as_torchvision(tmp_path, size):
    generator = np.random.default_rng(1)
    pixels = generator.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    expected = v2.Compose([v2.Resize(32), v2.CenterCrop(32)])(image)
    found = read_image(saved(tmp_path, image), channels=3, side=32).transpose(1, 2, 0)
    np.testing.assert_allclose(found.astype(int), np.asarray(expected).astype(int), atol=1)


def test_a_large_jpeg_is_read_coarsely_yet_right(tmp_path):
    ramp = np.linspace(0, 255, 1600).astype(np.uint8)
    image = Image.fromarray(np.broadcast_to(ramp, (1200, 1600)).copy())
    path = saved(tmp_path, image, "x.jpg", quality=95)
    expected = image.crop((200, 0, 1400, 1200)).resize((64, 64), Image.Resampling.BOX)
    found = read_image(path, channels=1, side=64)[0]
    np.testing.assert_allclose(found.astype(int), np.asarray(expected).astype(int), atol=3)


def test_broken_files_are_named_and_counted(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    paths = [saved(tmp_path, Image.fromarray(pixels), f"{n}.png") for n in range(6)]
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[: len(whole) // 2])
    paths[3].write_bytes(b"")
    paths[4].write_text("not an image")

    def read(path):
        return read_image(path, channels=3, side=8)

    with pytest.raises(DataError, match=r"1\.png: cannot be read as an image .*; 2 more"):
        list(read_all(read, paths, what="reading"))
    with pytest.raises(DataError, match=r"4\.png: cannot be read as an image \(unknown format"):
        list(read_all(read_size, paths[4:], what="reading"))
    with pytest.raises(DataError, match="No such file"):
        read(tmp_path / "none.png")
    fractions = saved(tmp_path, Image.fromarray(np.zeros((8, 8), np.float32)), "f.tif")
    for attempt in (read, read_size):
        with pytest.raises(DataError, match="fractions"):
            attempt(fractions)


def test_reading_many_keeps_their_order_and_tells_how_far(tmp_path):
    paths = [saved(tmp_path, Image.new("L", (n + 1, 5)), f"{n:03}.png") for n in range(70)]
    told = []
    sizes = list(read_all(read_size, paths, what="sizes", progress=lambda *what: told.append(what)))
    assert sizes == [(n + 1, 5) for n in range(70)]
    assert told == [("sizes", 32, 70), ("sizes", 64, 70), ("sizes", 70, 70)]
