"""A random walk over allocator, rows and tree: conservation after every step."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.cache import KVCache
from engine.cache.allocator import ceil_page
from engine.request import Request
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.pool_checks import check_idle, check_pool


class CacheMachine(RuleBasedStateMachine):
    """Requests with few distinct tokens, so that prefixes meet, split and duplicate."""

    @initialize(
        page_size=st.sampled_from([1, 2, 4, 16]),
        pages=st.integers(4, 40),
        disable_radix_cache=st.booleans(),
    )
    def start(self, page_size: int, pages: int, disable_radix_cache: bool) -> None:
        self.cache = KVCache(pages * page_size, page_size, 5, disable_radix_cache=disable_radix_cache)
        self.live: list[Request] = []
        self.made = 0

    def _pick(self, data: st.DataObject) -> Request:
        return data.draw(st.sampled_from(self.live))

    @precondition(lambda self: len(self.live) < 5)
    @rule(data=st.data(), family=st.integers(0, 2), share=st.integers(0, 40), own=st.integers(1, 40))
    def admit(self, data: st.DataObject, family: int, share: int, own: int) -> None:
        self.made += 1
        tokens = [family] * share + [100 + self.made % 4] * own
        request = Request(self.made, str(self.made), tokens)
        self.cache.match(request)
        assert request.prefix_len < len(tokens)
        assert request.prefix_len % self.cache.page_size == 0
        if request.node is not None:
            self.cache.tree.lock(request.node)
        end = data.draw(st.integers(request.prefix_len + 1, len(tokens)))
        need = ceil_page(end, self.cache.page_size) - request.prefix_len
        if need > self.cache.obtainable_tokens:
            if request.node is not None:
                self.cache.tree.unlock(request.node)
            return
        request.extend_end = end
        self.cache.attach(request)
        self.live.append(request)
        self.cache.grow([request], [end])

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def stash_and_continue(self, data: st.DataObject) -> None:
        request = self._pick(data)
        if request.extend_end >= len(request.tokens):
            return
        self.cache.checkpoint(request, request.extend_end)
        request.prefix_len = request.extend_end
        end = data.draw(st.integers(request.prefix_len + 1, len(request.tokens)))
        size = self.cache.page_size
        if ceil_page(end, size) - ceil_page(request.kv_len, size) <= self.cache.obtainable_tokens:
            request.extend_end = end
            self.cache.grow([request], [end])

    @precondition(lambda self: self.live)
    @rule(data=st.data(), token=st.integers(0, 2))
    def decode(self, data: st.DataObject, token: int) -> None:
        request = self._pick(data)
        if request.extend_end < request.prompt_len or self.cache.decode_need_tokens([request]) > (
            self.cache.obtainable_tokens
        ):
            return
        if request.output_len == 0:
            self.cache.checkpoint(request, request.extend_end)
        request.tokens.append(token)
        self.cache.grow_decode([request])

    @precondition(lambda self: self.live)
    @rule(data=st.data(), keep=st.booleans())
    def end(self, data: st.DataObject, keep: bool) -> None:
        request = self._pick(data)
        self.live.remove(request)
        self.cache.release(request, keep=keep)

    @rule(tokens=st.integers(1, 60))
    def evict(self, tokens: int) -> None:
        before = self.cache.tree.evictable_tokens
        enough = self.cache.make_room(tokens)
        assert enough == (self.cache.available_tokens >= tokens)
        assert enough or before == 0 or self.cache.tree.evictable_tokens == 0

    @invariant()
    def conserved(self) -> None:
        if hasattr(self, "cache"):
            check_pool(self.cache, self.live)

    def teardown(self) -> None:
        if hasattr(self, "cache"):
            for request in self.live:
                self.cache.release(request, keep=True)
            check_idle(self.cache)


TestCache = CacheMachine.TestCase
TestCache.settings = settings(max_examples=ENGINE_EXAMPLES, stateful_step_count=40, deadline=None)
