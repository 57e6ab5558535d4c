"""The class of a model: from the architectures that its config names, or from a task as the auto classes have it."""

from __future__ import annotations

from typing import Any

from ..base.errors import ExportError, problem

# Task names of pipelines and of optimum; the tables of transformers' auto classes (MODEL_FOR_…_MAPPING_NAMES) in which
# the class is looked up, in this order.
_TASKS: dict[str, tuple[str, ...]] = {
    "feature-extraction": ("",),
    "sentence-similarity": ("",),
    "text-generation": ("CAUSAL_LM", "MULTIMODAL_LM"),
    "text2text-generation": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "summarization": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "translation": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "fill-mask": ("MASKED_LM",),
    "text-classification": ("SEQUENCE_CLASSIFICATION",),
    "zero-shot-classification": ("SEQUENCE_CLASSIFICATION",),
    "token-classification": ("TOKEN_CLASSIFICATION",),
    "question-answering": ("QUESTION_ANSWERING",),
    "table-question-answering": ("TABLE_QUESTION_ANSWERING",),
    "multiple-choice": ("MULTIPLE_CHOICE",),
    "image-classification": ("IMAGE_CLASSIFICATION",),
    "image-feature-extraction": ("", "IMAGE"),
    "zero-shot-image-classification": ("ZERO_SHOT_IMAGE_CLASSIFICATION",),
    "object-detection": ("OBJECT_DETECTION",),
    "zero-shot-object-detection": ("ZERO_SHOT_OBJECT_DETECTION",),
    "image-segmentation": (
        "IMAGE_SEGMENTATION",
        "SEMANTIC_SEGMENTATION",
        "INSTANCE_SEGMENTATION",
        "UNIVERSAL_SEGMENTATION",
    ),
    "semantic-segmentation": ("SEMANTIC_SEGMENTATION", "UNIVERSAL_SEGMENTATION"),
    "instance-segmentation": ("INSTANCE_SEGMENTATION", "UNIVERSAL_SEGMENTATION"),
    "universal-segmentation": ("UNIVERSAL_SEGMENTATION",),
    "mask-generation": ("MASK_GENERATION",),
    "depth-estimation": ("DEPTH_ESTIMATION",),
    "keypoint-detection": ("KEYPOINT_DETECTION",),
    "image-to-image": ("IMAGE_TO_IMAGE",),
    "image-matting": ("IMAGE_MATTING",),
    "masked-im": ("MASKED_IMAGE_MODELING",),
    "image-to-text": ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM"),
    "image-text-to-text": ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM"),
    "any-to-any": ("MULTIMODAL_LM",),
    "visual-question-answering": ("VISUAL_QUESTION_ANSWERING", "IMAGE_TEXT_TO_TEXT"),
    "document-question-answering": ("DOCUMENT_QUESTION_ANSWERING",),
    "video-classification": ("VIDEO_CLASSIFICATION",),
    "automatic-speech-recognition": ("SPEECH_SEQ_2_SEQ", "CTC", "RNNT", "TDT"),
    "audio-classification": ("AUDIO_CLASSIFICATION",),
    "audio-frame-classification": ("AUDIO_FRAME_CLASSIFICATION",),
    "audio-xvector": ("AUDIO_XVECTOR",),
    "text-to-audio": ("TEXT_TO_WAVEFORM", "TEXT_TO_SPECTROGRAM"),
    "time-series-forecasting": ("TIME_SERIES_PREDICTION",),
    "time-series-classification": ("TIME_SERIES_CLASSIFICATION",),
    "time-series-regression": ("TIME_SERIES_REGRESSION",),
}
# Heads that the tables of the auto classes leave out for some models: the end of the class name.
_HEADS = {"time-series-forecasting": "ForPrediction"}
_ALSO = {
    "default": "feature-extraction",
    "causal-lm": "text-generation",
    "seq2seq-lm": "text2text-generation",
    "masked-lm": "fill-mask",
    "sequence-classification": "text-classification",
    "sentiment-analysis": "text-classification",
    "ner": "token-classification",
    "multimodal-text-to-text": "image-text-to-text",
    "vision2seq-lm": "image-text-to-text",
    "speech2seq-lm": "automatic-speech-recognition",
    "audio-ctc": "automatic-speech-recognition",
    "text-to-speech": "text-to-audio",
    "time-series-prediction": "time-series-forecasting",
}


def known_tasks() -> list[str]:
    return sorted(_TASKS)


def model_class(config: Any, task: str | None = None) -> type:
    """The class for a config (a transformers config, or config.json as a dict).

    Without a task it is the first that `architectures` names and transformers has. With one it is that class where it
    does the task, else the class that the auto classes have for the task and the config's model type."""
    import transformers

    named = [
        name for name in _get(config, "architectures") or [] if isinstance(getattr(transformers, name, None), type)
    ]
    if task is None:
        if named:
            return getattr(transformers, named[0])
        raise _nothing_named(config)
    wanted = _class_names(_get(config, "model_type"), _canonical(task))
    if not wanted:
        raise _not_for(config, task)
    return getattr(transformers, next((name for name in named if name in wanted), wanted[0]))


def _get(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, dict) else getattr(config, name, None)


def _canonical(task: str) -> str:
    """The task in our table; optimum's "-with-past" asks for other inputs of the same class."""
    known = _ALSO.get(task, task).removesuffix("-with-past")
    known = _ALSO.get(known, known)
    if known not in _TASKS:
        raise problem("E0309", f"no task is called {task!r}", f"name one of these: {', '.join(known_tasks())}")
    return known


def _class_names(model_type: str | None, task: str) -> list[str]:
    """What the auto classes have for a task and a type of model."""
    import transformers
    from transformers.models.auto import modeling_auto

    names: list[str] = []
    for table in _TASKS[task]:
        mapping = getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES" if table else "MODEL_MAPPING_NAMES", {})
        entry = mapping.get(model_type, ())
        names += [entry] if isinstance(entry, str) else list(entry)
    base = modeling_auto.MODEL_MAPPING_NAMES.get(model_type)
    if task in _HEADS and isinstance(base, str) and base.endswith("Model"):
        names.append(base.removesuffix("Model") + _HEADS[task])
    return [name for name in dict.fromkeys(names) if hasattr(transformers, name)]


def _tasks_of(config: Any) -> list[str]:
    return [task for task in known_tasks() if _class_names(_get(config, "model_type"), task)]


def _nothing_named(config: Any) -> ExportError:
    architectures = _get(config, "architectures")
    what = (
        f"transformers has no class {' or '.join(architectures)}"
        if architectures
        else "the config names no architectures"
    )
    tasks = _tasks_of(config)
    ways = [f"name a task; for {_get(config, 'model_type')} there are: {', '.join(tasks)}"] if tasks else []
    return problem("E0309", what, *ways, "load the model yourself and pass it in place of the folder")


def _not_for(config: Any, task: str) -> ExportError:
    model_type = _get(config, "model_type")
    tasks = _tasks_of(config)
    way = (
        f"name one that it has: {', '.join(tasks)}"
        if tasks
        else "leave the task out, so that the config's architectures count"
    )
    return problem("E0309", f"transformers has no class for {task} with a model of type {model_type}", way)
