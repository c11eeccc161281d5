package taburi

import (
	"strings"
	"testing"
)

func TestTabURI(t *testing.T) {
	for _, c := range []struct{ own, segment, want string }{
		{"https://x.test/a", "2", "https://x.test/.pagewire/tab/2/a"},
		{"https://x.test/a/b?c=d/e", "12", "https://x.test/.pagewire/tab/12/a/b?c=d/e"},
		{"https://x.test/a", "2.0.1", "https://x.test/.pagewire/tab/2.0.1/a"},
		{"https://x.test/a", "", "https://x.test/a"},
		{"https://x.test/", "2", "https://x.test/.pagewire/tab/2/"},
		{"https://x.test", "2", "https://x.test/.pagewire/tab/2"},
		{"https://x.test?q=/", "2", "https://x.test/.pagewire/tab/2?q=/"},
		{"https://x.test/?q=1", "2", "https://x.test/.pagewire/tab/2/?q=1"},
		{"http://localhost:3000/a", "2", "http://localhost:3000/.pagewire/tab/2/a"},
		{"http://[::1]:3000/a", "2", "http://[::1]:3000/.pagewire/tab/2/a"},
		{"http://[::1]/", "2", "http://[::1]/.pagewire/tab/2/"},
		{"https://x.test/i/{id}/x{?q,lang}", "2", "https://x.test/.pagewire/tab/2/i/{id}/x{?q,lang}"},
		{"https://x.test/{id}", "2", "https://x.test/.pagewire/tab/2/{id}"},
		{"https://x.test{?q}", "2", "https://x.test/.pagewire/tab/2{?q}"},
		{"https://x.test//a//", "2", "https://x.test/.pagewire/tab/2//a//"},
		{"https://x.test/a/.pagewire/tab/3/", "2", "https://x.test/.pagewire/tab/2/a/.pagewire/tab/3/"},
		// What the user offers.
		{"https://x.test/.pagewire/shown", "2", "https://x.test/.pagewire/shown/tab/2"},
		{"https://x.test/.pagewire/shown", "", "https://x.test/.pagewire/shown"},
		{"https://x.test/.pagewire/shown?from=9/tab/3", "2.A0", "https://x.test/.pagewire/shown/tab/2.A0?from=9/tab/3"},
		{"https://x.test/.pagewire/shown{?from}", "2", "https://x.test/.pagewire/shown/tab/2{?from}"},
		{"https://x.test/.pagewire/parts/tab", "2", "https://x.test/.pagewire/parts/tab/tab/2"},
		{"https://x.test/.pagewire/parts/a/tab/1", "2", "https://x.test/.pagewire/parts/a/tab/1/tab/2"},
		{"https://x.test/shown", "2", "https://x.test/.pagewire/tab/2/shown"}, // the page's own
		{"https://x.test/parts/a", "2", "https://x.test/.pagewire/tab/2/parts/a"},
		// Not a web origin.
		{"test://static-text", "2", "test://static-text/.pagewire/tab/2"},
		{"test://template/{id}/data", "2", "test://template/.pagewire/tab/2/{id}/data"},
		{"file:///a", "2", "file:///.pagewire/tab/2/a"},
		{"urn:x:y", "2", "urn:/.pagewire/tab/2/x:y"},
		{"urn:/x", "2", "urn:/.pagewire/tab/2//x"},
	} {
		if got := Of(c.own, c.segment); got != c.want {
			t.Errorf("tab %q has %s as %s, want %s", c.segment, c.own, got, c.want)
		}
		if own, segment := Split(c.want); own != c.own || segment != c.segment {
			t.Errorf("%s is %s of tab %q, want %s of %q", c.want, own, segment, c.own, c.segment)
		}
	}
}

// URIs that look like a tab's URI and are not are left unchanged.
func TestURIsOfNoTab(t *testing.T) {
	for uri, ours := range map[string]bool{
		"": false, ":": false, "//": false, "https:": false, "https://": false, "https://x.test": false,
		"https://x.test/a": false, "https://x.test/.pagewire": false, "https://x.test/?/.pagewire/tab/2/a": false,
		"https://x.test?/.pagewire/tab/2/a": false, "https://x.test/a/.pagewire/tab/2/a": false,
		"https://x.test/a#tab=2":    false,
		"https://x.test/.pagewire/": true, "https://x.test/.pagewire/tab/": true,
		"https://x.test/.pagewire/tab//a":  true,
		"https://x.test/.pagewire/tab?2/a": true, "https://x.test/.pagewire/other/2/a": true,
		"https://x.test/.pagewire/shown/tab/": true, "https://x.test/.pagewire/shown?a=/tab/2": true,
		"https://x.test/%2Epagewire/shown": true, "https://x.test/.pagewire%2Fshown": true, "https://x.test/%2e%70agewire/a": true,
		"https://x.test/%252Epagewire/shown": false, "https://x.test/%/.pagewire/shown": false,
		"urn:/.pagewire/tab/2": true,
	} {
		if Reserved(uri) != ours {
			t.Errorf("%q is under our path: %t", uri, !ours)
		}
		if own, segment := Split(uri); own != uri || segment != "" {
			t.Errorf("%q is taken for %q of tab %q", uri, own, segment)
		}
	}
}

func FuzzTabURI(f *testing.F) {
	for _, own := range []string{"https://x.test/a?b=c", "https://x.test", "http://[::1]:3000/{a}{?b}", "test://a",
		"urn:a:b", "urn:/a", "file:///", "https:a", "a:b//c"} {
		f.Add(own, uint8(2), "")
		f.Add(own, uint8(12), "0.1")
	}
	f.Fuzz(func(t *testing.T, own string, number uint8, frame string) {
		if !strings.Contains(own, ":") || Reserved(own) || strings.ContainsAny(frame, "/?#{") {
			return // pages have no such URIs
		}
		segment := Segment(int(number), frame)
		uri := Of(own, segment)
		if !Reserved(uri) {
			t.Errorf("%q in tab %s is %q, which is not under our path", own, segment, uri)
		}
		if got, of := Split(uri); got != own || of != segment {
			t.Errorf("%q in tab %s is %q, and that is %q of %q", own, segment, uri, got, of)
		}
		if got, of := Split(own); got != own || of != "" {
			t.Errorf("%q is taken for %q of tab %q", own, got, of)
		}
	})
}
