"""Published configurations name their sources, and are all in use."""

from __future__ import annotations

import json

from fixtures.catalogue.workloads import WORKLOADS
from fixtures.catalogue.workloads.sources import FOLDER, Source, changed

SOURCES = {
    name: workload.source
    for name, workload in WORKLOADS.items()
    if isinstance(workload.source, Source)
}


def test_every_configuration_names_its_source_and_none_is_unused() -> None:
    used = [dict(config) for source in SOURCES.values() for config in source.configs.values()]
    for path in FOLDER.glob("*.json"):
        assert path.stem in SOURCES
        for component, config in json.loads(path.read_text(encoding="utf-8")).items():
            if isinstance(config, dict):
                is_made = component in ("model_index", "guider") or "tokenizer" in component
                assert config.get("_source") or is_made, f"{component} of {path.name}"
                stated = changed({}, config).items()
                assert any(stated <= other.items() for other in used), path.name
