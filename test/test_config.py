"""`helion.Config`: a mapping, its text, its files."""

import json
import pickle
import stat
from pathlib import Path

import pytest

from helion.runtime import config as tables
from helion.runtime.config import DEFAULTS, KNOWN_KEYS, PLURAL_OF, Config, is_other_backend_key


def full():
    return Config(block_sizes=[64, 128], num_warps=8, loop_orders=[[1, 0]], unroll=3)


class Spec:
    """A search space whose default config is known."""

    def __init__(self, **keys):
        self.keys = keys

    def default_config(self):
        return Config(**self.keys)


def test_is_a_mapping():
    config = full()
    assert config["num_warps"] == 8
    assert list(config) == ["block_sizes", "num_warps", "loop_orders", "unroll"]
    assert len(config) == 4
    assert dict(config) == config.config
    assert {**config} == dict(config)
    assert config.get("num_stages") is None
    with pytest.raises(KeyError):
        config["num_stages"]


def test_takes_keywords_only():
    with pytest.raises(TypeError):
        Config({"num_warps": 4})


def test_none_is_not_stored_and_unknown_keys_are():
    assert Config(num_warps=None, maxnreg=None, self=1).config == {"self": 1}
    assert Config(reduction_loops=[None, 32]).reduction_loops == [None, 32]


def test_nothing_is_validated():
    assert Config(num_warps="many").num_warps == "many"


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_property_falls_back_to_the_default(name):
    empty = Config()
    assert getattr(empty, name) == DEFAULTS[name]
    assert getattr(Config(**{name: [7]}), name) == [7]
    value = getattr(empty, name)
    if isinstance(value, list):
        value.append(1)
        assert getattr(empty, name) == []


def test_some_defaults():
    config = Config()
    assert (config.num_warps, config.num_stages, config.pid_type) == (4, 1, "flat")
    assert (config.num_sm_multiplier, config.maxnreg, config.indexing) == (1, None, "pointer")
    assert config.loop_orders == []


def test_block_sizes_have_no_default():
    with pytest.raises(KeyError, match="block_sizes"):
        _ = Config().block_sizes


def test_repr_is_python_with_sorted_keys():
    config = full()
    text = "Config(block_sizes=[64, 128], loop_orders=[[1, 0]], num_warps=8, unroll=3)"
    assert str(config) == text
    assert repr(config) == f"helion.{text}"
    assert eval(str(config), {"Config": Config}) == config


def test_repr_of_a_key_that_no_keyword_can_be():
    config = Config(**{"my-choice": 1, "class": 2, "a": 3})
    assert str(config) == "Config(a=3, **{'class': 2, 'my-choice': 1})"
    assert eval(str(config), {"Config": Config}) == config
    assert str(Config()) == "Config()"


def test_equality_and_hash():
    config = full()
    same = Config(unroll=3, num_warps=8, loop_orders=[(1, 0)], block_sizes=(64, 128))
    assert config == same
    assert hash(config) == hash(same)
    assert config == dict(config)
    assert config != Config(**{**config, "num_warps": 4})
    assert config != "config"
    assert len({config, same, Config()}) == 2
    assert isinstance(hash(Config(nested={"a": [1, [2]]})), int)


def test_owns_its_lists():
    sizes = [32, [64]]
    config = Config(block_sizes=sizes)
    sizes[1].append(1)
    sizes.append(128)
    assert config.block_sizes == [32, [64]]


def test_pickle():
    again = pickle.loads(pickle.dumps(full()))
    assert again == full()
    assert again.num_warps == 8


def test_json():
    config = full()
    assert json.loads(config.to_json()) == dict(config)
    assert config.to_json().splitlines()[1].startswith('  "block_sizes"')
    assert Config.from_json(config.to_json()) == config


def test_json_that_is_no_object():
    with pytest.raises(ValueError, match="must be a JSON object, got a list"):
        Config.from_json("[1]")


def test_from_dict_leaves_the_dict_alone():
    keys = {"block_sizes": (16,), "num_warps": None}
    assert Config.from_dict(keys) == Config(block_sizes=[16])
    assert keys == {"block_sizes": (16,), "num_warps": None}


def test_save_and_load(tmp_path):
    path = tmp_path / "a" / "b" / "best.json"
    full().save(path)
    assert Config.load(path) == full()
    Config(num_warps=2).save(str(path))
    assert Config.load(str(path)) == Config(num_warps=2)
    assert [item.name for item in path.parent.iterdir()] == ["best.json"]
    plain = tmp_path / "plain"
    plain.write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "best.json"
    full().save(path)

    def fail(self, target):
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no"):
        Config(num_warps=2).save(path)
    assert Config.load(path) == full()
    assert list(tmp_path.iterdir()) == [path]


def test_minimize_drops_defaults_but_keeps_block_sizes():
    spec = Spec(block_sizes=[64, 128], num_warps=8, loop_orders=[[0, 1]], unroll=3)
    assert full().minimize(spec) == Config(block_sizes=[64, 128], loop_orders=[[1, 0]])


def test_minimize_knows_defaults_that_the_spec_leaves_out():
    config = Config(num_stages=1, pid_type="xyz", unroll=2)
    assert config.minimize(Spec()) == Config(pid_type="xyz", unroll=2)
    assert config.config == {"num_stages": 1, "pid_type": "xyz", "unroll": 2}


def test_singular_spellings_stand_for_list_keys():
    assert set(PLURAL_OF.values()) <= KNOWN_KEYS
    assert not set(PLURAL_OF) & KNOWN_KEYS
    for plural in PLURAL_OF.values():
        assert plural == "block_sizes" or DEFAULTS[plural] == []


def test_every_known_key_is_a_property():
    assert {name for name in KNOWN_KEYS if name not in vars(Config)} == set()
    assert "block_sizes" not in DEFAULTS


def test_keys_of_other_backends():
    for key in ("num_threads", "num_ctas", "pallas_loop_type", "tcgen05_x", "cute_y"):
        assert is_other_backend_key(key)
    sets = (tables.IGNORED_KEYS, tables.AMD_ONLY_KEYS, KNOWN_KEYS)
    assert not [key for keys in sets for key in keys if is_other_backend_key(key)]
