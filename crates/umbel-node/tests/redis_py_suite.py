"""A plugin for pytest: which of redis-py's own tests of filters are not run against an umbel host, and why.

`cargo xtask redis-py` fetches the tests with redis-py's source distribution and runs them with this plugin.
"""

import inspect

import pytest
from redis.commands.bf.commands import CMSCommands, TOPKCommands

NO_SKETCHES = "umbel holds sets of keys, and no count-min sketches (CMS)"
NO_LISTS = "umbel holds sets of keys, and no top-k lists (TOPK)"
NO_DIGESTS = "umbel holds sets of keys, and no t-digests (TDIGEST)"

# Every test that is not run, with the reason.
EXCLUDED = {
    "test_cms": NO_SKETCHES,
    "test_cms_merge": NO_SKETCHES,
    "test_topk": NO_LISTS,
    "test_topk_list_with_special_words": NO_LISTS,
    "test_topk_incrby": NO_LISTS,
    "test_tdigest_create": NO_DIGESTS,
    "test_tdigest_reset": NO_DIGESTS,
    "test_tdigest_merge": NO_DIGESTS,
    "test_tdigest_min_and_max": NO_DIGESTS,
    "test_tdigest_quantile": NO_DIGESTS,
    "test_tdigest_cdf": NO_DIGESTS,
    "test_tdigest_trimmed_mean": NO_DIGESTS,
    "test_tdigest_rank": NO_DIGESTS,
    "test_tdigest_revrank": NO_DIGESTS,
    "test_tdigest_byrank": NO_DIGESTS,
    "test_tdigest_byrevrank": NO_DIGESTS,
}

# Tests of filters that make a sketch and a top-k list at their end as well: these calls are not sent.
WITH_OTHERS = {"test_create", "test_bf_reserve"}


def pytest_collection_modifyitems(config, items):
    names = {item.originalname for item in items}
    unknown = sorted(set(EXCLUDED) - names)
    if unknown:
        raise pytest.UsageError(f"excluded, but not among redis-py's tests: {', '.join(unknown)}")
    left_out = [item for item in items if item.originalname in EXCLUDED]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.originalname not in EXCLUDED]


@pytest.fixture(autouse=True)
def calls_that_are_not_sent(request, monkeypatch):
    if request.node.originalname not in WITH_OTHERS:
        return

    async def accept_later(*arguments, **options):
        return True

    def accept(*arguments, **options):
        return True

    stub = accept_later if inspect.iscoroutinefunction(request.function) else accept
    monkeypatch.setattr(CMSCommands, "initbydim", stub)
    monkeypatch.setattr(CMSCommands, "initbyprob", stub)
    monkeypatch.setattr(TOPKCommands, "reserve", stub)
