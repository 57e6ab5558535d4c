"""Pictures and sounds from files. What cannot be read is refused before torch is imported or a model loaded."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

from ..base.errors import problem


def read_image(path: str) -> Any:
    """A picture in RGB."""
    _needs_file(path)
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise problem("E0307", "pictures are read by Pillow, which is not installed", "pip install pillow") from error
    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except (UnidentifiedImageError, OSError, SyntaxError) as error:  # Pillow says so of broken PNG files
        raise problem("E0312", f"{path} is no picture that can be read: {error}", "use a PNG or JPEG file") from error


def read_sound(path: str) -> tuple[Any, int]:
    """One channel of samples between -1 and 1, and how many of them are a second."""
    import numpy as np

    _needs_file(path)
    try:
        with wave.open(path, "rb") as file:
            rate, width, channels = file.getframerate(), file.getsampwidth(), file.getnchannels()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        return _by_soundfile(path, error)
    whole = len(data) - len(data) % (width * channels)
    raw = np.frombuffer(data[:whole], dtype=np.uint8)
    if width == 1:  # the only width without a sign
        samples = raw.astype(np.float32) / 128 - 1
    else:
        # Little-endian samples of any width, moved to the top of 32 bits.
        wide: Any = np.zeros((len(raw) // width, 4), dtype=np.uint8)
        wide[:, 4 - width :] = raw.reshape(-1, width)
        samples = wide.view("<i4")[:, 0].astype(np.float32) / 2**31
    return samples.reshape(-1, channels).mean(axis=1), rate


def _by_soundfile(path: str, error: Exception) -> tuple[Any, int]:
    """Formats other than plain WAV, where somebody installed what reads them."""
    try:
        import soundfile
    except ImportError:
        raise problem(
            "E0312",
            f"{path} is no WAV file that can be read: {error}",
            f"convert it: ffmpeg -i {path} sound.wav",
            "for other formats: pip install soundfile",
        ) from error
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except Exception as refused:
        raise problem("E0312", f"{path} is no sound that can be read: {refused}", "use a WAV file") from refused
    return samples.mean(axis=1), rate


def resampled(samples: Any, rate: int, wanted: int) -> Any:
    """The same sound at another rate, by its spectrum."""
    import numpy as np

    if rate == wanted or not len(samples):
        return samples
    length = max(1, round(len(samples) * wanted / rate))
    spectrum = np.fft.rfft(samples)
    kept = np.zeros(length // 2 + 1, dtype=spectrum.dtype)
    both = min(len(kept), len(spectrum))
    kept[:both] = spectrum[:both]
    return (np.fft.irfft(kept, n=length) * (length / len(samples))).astype(np.float32)


def _needs_file(path: str) -> None:
    if not Path(path).is_file():
        raise problem("E0103", f"{path}: no such file", "name a file that exists")
