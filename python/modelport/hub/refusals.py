"""What the hub refuses, in our words: every refusal with something to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..base.errors import ExportError, problem
from .name import HubName, similar

_LOG_IN = "log in (hf auth login), or set HF_TOKEN to a token that may read it"


@contextmanager
def in_our_words(name: HubName) -> Iterator[None]:
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        HTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    place = f"https://huggingface.co/{name.repository}"
    try:
        yield
    except GatedRepoError as error:
        what = f"{name.repository} is open only to those who accepted its terms, and the hub does not know you as one"
        raise problem("E0316", what, f"accept the terms at {place}", _LOG_IN) from error
    except RevisionNotFoundError as error:
        what = f"{name.repository} has no revision {name.revision or 'main'}"
        raise problem("E0316", what, f"see its branches, tags and commits: {place}/commits/main") from error
    except RepositoryNotFoundError as error:
        what = f"{name.repository} is no folder here, and the hub has no model of that name, or a private one"
        way = "name the whole path of your folder, or the model as the hub does: org/name"
        raise problem("E0316", what, *similar(name.repository), way, f"if it is private: {_LOG_IN}") from error
    except HFValidationError as error:
        raise problem("E0316", f"{name} is no name of the hub: {error}", "name a model as org/name") from error
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status in (401, 403):
            raise problem("E0316", f"the hub does not let you read {name} ({status})", _LOG_IN) from error
        raise not_reached(name, error) from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled, HTTPError, ConnectionError, TimeoutError) as error:
        raise not_reached(name, error) from error


def not_reached(name: HubName, error: Exception | None, file: str = "") -> ExportError:
    """Neither the hub nor its cache had it."""
    from huggingface_hub import constants

    if constants.is_offline_mode():
        why, ways = "HF_HUB_OFFLINE is set", ["unset it: HF_HUB_OFFLINE=0"]
    else:
        first = (str(error).splitlines() or [""])[0]
        why, ways = f"{constants.ENDPOINT} was not reached ({first})", ["try again with a connection"]
    part = f"{file} of {name}" if file else str(name)
    ways.append(f"bring it into the cache on a machine that has one: hf download {name.repository}")
    what = f"{part} is not in the cache {constants.HF_HUB_CACHE}, and {why}"
    return problem("E0317", what, *similar(name.repository), *ways)
