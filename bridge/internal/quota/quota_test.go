package quota

import "testing"

func TestQuota(t *testing.T) {
	q := New(10, 6)
	take := func(owner string, bytes, limit int64, own bool) {
		t.Helper()
		if full := q.Take(owner, bytes); full != nil != (limit > 0) || full != nil && *full != (Full{limit, own}) {
			t.Errorf("%d bytes of %s: %+v", bytes, owner, full)
		}
	}
	take("a", 6, 0, false)
	take("a", 1, 6, true)
	take("b", 4, 0, false)
	take("b", 1, 10, false)
	q.Give("a", 6)
	take("b", 2, 0, false)
	q.Give("b", 6)
	if q.Held() != 0 || len(q.of) != 0 {
		t.Errorf("%d bytes are left, of %v", q.Held(), q.of)
	}
}
