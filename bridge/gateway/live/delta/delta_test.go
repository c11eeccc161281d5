package delta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/pagewire/pagewire/bridge/testkit/deltatest"
)

// apply applies a delta as an agent does: it uses an independent library for JSON, and its own code for lines.
func apply(t testing.TB, kind Kind, before, text string) string {
	t.Helper()
	if kind == Diff {
		return applyDiff(t, before, text)
	}
	p, err := jsonpatch.DecodePatch([]byte(text))
	if err != nil {
		t.Fatalf("%s is no patch: %v", text, err)
	}
	after, err := p.Apply([]byte(before))
	if err != nil {
		t.Fatalf("%s cannot be applied to %s: %v", text, before, err)
	}
	return string(after)
}

func applyDiff(t testing.TB, before, text string) string {
	t.Helper()
	lines := strings.SplitAfter(before, "\n")
	var out strings.Builder
	at := 0
	all := strings.SplitAfter(text, "\n")
	for i, line := range all {
		switch {
		case line == "":
		case strings.HasPrefix(line, "@@"):
			start, _, _ := strings.Cut(strings.TrimPrefix(line, "@@ -"), " ")
			first, count, counted := strings.Cut(start, ",")
			n, err := strconv.Atoi(first)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if !counted || count != "0" {
				n-- // the first line is 1; if no line is removed, it is the line before
			}
			for ; at < n; at++ {
				out.WriteString(lines[at])
			}
		case line[0] == '\\': // no newline at the end
		default:
			body := line[1:]
			if i+1 < len(all) && strings.HasPrefix(all[i+1], `\`) {
				body = strings.TrimSuffix(body, "\n")
			}
			if line[0] != '+' {
				if lines[at] != body {
					t.Fatalf("the diff has %q where there is %q", body, lines[at])
				}
				at++
			}
			if line[0] != '-' {
				out.WriteString(body)
			}
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String()
}

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	read := func(s string) (v any) {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return v
	}
	x, _ := json.Marshal(read(a))
	y, _ := json.Marshal(read(b))
	return bytes.Equal(x, y)
}

// A writer makes random JSON and random changes of it.
type writer struct{ *rand.Rand }

// There is no empty name, since json-patch takes it for the document itself.
var names = []string{"a", "b", "items", "x/y", "~t", "quantité", "a long name with \"quotes\"", "é", `\`, `],["`,
	`\",1,"`}

func (w writer) value(depth int) any {
	switch n := w.IntN(10); {
	case depth > 0 && n < 3:
		list := []any{}
		for range w.IntN(7) {
			list = append(list, w.value(depth-1))
		}
		return list
	case depth > 0 && n < 6:
		object := map[string]any{}
		for range w.IntN(6) {
			object[names[w.IntN(len(names))]] = w.value(depth - 1)
		}
		return object
	case n < 7:
		return json.Number(strconv.FormatUint(w.Uint64(), 10)) // more digits than a float has
	case n < 8:
		return w.IntN(2) == 0
	case n < 9:
		return nil
	}
	return names[w.IntN(len(names))] + strconv.Itoa(w.IntN(50))
}

// edit returns v with random changes.
func (w writer) edit(v any) any {
	if w.IntN(12) == 0 {
		return w.value(2)
	}
	switch v := v.(type) {
	case []any:
		list := []any{}
		for _, e := range v {
			switch w.IntN(8) {
			case 0:
			case 1:
				list = append(list, w.value(1), e)
			case 2:
				list = append(list, w.edit(e))
			default:
				list = append(list, e)
			}
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, e := range v {
			if w.IntN(8) > 0 {
				object[name] = e
			}
			if w.IntN(4) == 0 {
				object[name] = w.edit(e)
			}
		}
		return object
	}
	return v
}

func TestWhatTheAgentHasBecomesWhatThePageHas(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := writer{rand.New(rand.NewPCG(seed, 0))}
	kinds := map[Kind]int{}
	for n := 0; n < 5000; {
		var before, after string
		if n%4 > 0 {
			a := map[string]any{"items": w.value(4), "rest": w.value(3), "same": strings.Repeat("x", 40)}
			b := w.edit(a)
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			if before, after = string(x), string(y); n%8 == 1 {
				var pretty bytes.Buffer
				_ = json.Indent(&pretty, x, "", "  ")
				before = pretty.String()
				pretty.Reset()
				_ = json.Indent(&pretty, y, "", "  ")
				after = pretty.String()
			}
		} else {
			before, after = w.lines()
		}
		if before == after {
			continue
		}
		n++
		kind, text := Of(before, after)
		kinds[kind]++
		if kind == None {
			continue
		}
		if len(text) >= len(after) {
			t.Fatalf("a delta of %d bytes for a text of %d", len(text), len(after))
		}
		got := apply(t, kind, before, text)
		if kind == Diff && got != after || kind == Patch && !sameJSON(t, got, after) {
			t.Fatalf("before %s\nafter  %s\n%s %s\ngives  %s", before, after, kind, text, got)
		}
	}
	if kinds[Patch] < 1000 || kinds[Diff] < 300 || kinds[None] == 0 {
		t.Fatalf("too few of a kind: %v", kinds)
	}
	t.Log(kinds)
}

func (w writer) lines() (before, after string) {
	var a, b strings.Builder
	end := func(last bool) string {
		if last && w.IntN(2) == 0 {
			return ""
		}
		return "\n"
	}
	n := 1 + w.IntN(60)
	for i := range n {
		line := fmt.Sprintf("line %d of %d", w.IntN(20), n)
		a.WriteString(line + end(i == n-1))
		switch w.IntN(12) {
		case 0:
		case 1:
			b.WriteString("another line\n" + line + end(i == n-1))
		default:
			b.WriteString(line + end(i == n-1))
		}
	}
	return a.String(), b.String()
}

func TestPatches(t *testing.T) {
	const pad = `"pad":"................................................................"`
	const pad2 = `"more":"................................................................"`
	for _, c := range []struct{ before, after, want string }{
		{`{"total":5,"items":[{"sku":"A","qty":1},{"sku":"B","qty":1}],` + pad + `}`,
			`{"total":6,"items":[{"sku":"A","qty":2},{"sku":"B","qty":1}],` + pad + `}`,
			`[{"op":"replace","path":"/items/0/qty","value":2},{"op":"replace","path":"/total","value":6}]`},
		{`{"l":["a","b","c","d","e"],` + pad + `,` + pad2 + `}`, `{"l":["a","c","d","new","x","e"],` + pad + `,` +
			pad2 + `}`,
			`[{"op":"add","path":"/l/4","value":"new"},{"op":"add","path":"/l/5","value":"x"},{"op":"remove","path":"/l/1"}]`},
		{`{"n":12345678901234567890,` + pad + `}`, `{"n":12345678901234567891,` + pad + `}`,
			`[{"op":"replace","path":"/n","value":12345678901234567891}]`},
		{`{"a":1,"a":2,` + pad + `}`, `{"a":5,"a":2,` + pad + `}`, ``}, // it is ambiguous which a changes
		{`{"a":{"x":1,"x":2},` + pad + `}`, `{"a":{"x":3,"x":2},` + pad + `}`,
			`[{"op":"replace","path":"/a","value":{"x":3,"x":2}}]`},
		{`{"a":1}`, `[1,2,3,4,5,6]`, ``},
		{"one\ntwo\nthree\n", "one\ntwo\n3\n", ``},
		{strings.Repeat("line\n", 40) + "six\nseven\n", strings.Repeat("line\n", 40) + "6\nseven\n",
			"@@ -41 +41 @@\n-six\n+6\n"},
		// A line that is there twice says not where it is, and neither does a new one.
		{strings.Repeat("line\n", 40) + "six\nseven\nsix\n", strings.Repeat("line\n", 40) + "6\nseven\nsix\n",
			"@@ -40,3 +40,3 @@\n line\n-six\n+6\n seven\n"},
		{strings.Repeat("line\n", 40) + "sixteen\nseven\nsix", strings.Repeat("line\n", 40) + "sixteen\nseven\n6",
			"@@ -42,2 +42,2 @@\n seven\n-six\n\\ No newline at end of file\n+6\n\\ No newline at end of file\n"},
		{strings.Repeat("line\n", 40) + "six\nseven\n", strings.Repeat("line\n", 40) + "six\nnew\nseven\n",
			"@@ -41,2 +41,3 @@\n six\n+new\n seven\n"},
		{strings.Repeat("line\n", 40) + "six\nseven\neight\n", strings.Repeat("line\n", 40) + "six\neight\n",
			"@@ -42 +41,0 @@\n-seven\n"},
		{strings.Repeat("line\n", 40) + "six\nseven\neight\nnine\n", strings.Repeat("line\n", 40) + "6\nseven\n8\nnine\n",
			"@@ -41,3 +41,3 @@\n-six\n+6\n seven\n-eight\n+8\n"},
		{"", "x", ""},
		{"{", "{}", ""},
	} {
		if _, got := Of(c.before, c.after); got != c.want {
			t.Errorf("%s\n-> %s\n got %s\nwant %s", c.before, c.after, got, c.want)
		}
	}
}

// sides returns a line with marked words as it was and as it is.
func sides(line string) (was, is string) {
	cut := func(line, open, shut string) (without, with string) {
		before, rest, marked := strings.Cut(line, open)
		words, behind, _ := strings.Cut(rest, shut)
		switch {
		case !marked:
			return line, line
		case before == "":
			without = strings.TrimPrefix(behind, " ")
		default:
			without = strings.TrimSuffix(before, " ") + behind
		}
		return without, before + words + behind
	}
	was, _ = cut(line, "{+", "+}")
	_, was = cut(was, "[-", "-]")
	is, _ = cut(line, "[-", "-]")
	_, is = cut(is, "{+", "+}")
	return was, is
}

// Whoever has the earlier text makes the present one from marked words, to the byte.
func TestMarkedWordsCanBeApplied(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := writer{rand.New(rand.NewPCG(seed, 0))}
	words := []string{"", "a", "b", "[", "{", "+", "]", "}", "1-", "two three", "ü", "\r", "[-x", "+}"}
	marked := 0
	for range 5000 {
		var before, after []string
		for i := range 20 {
			line := []string{"a line with some words", strconv.Itoa(i) + ":"}
			for range w.IntN(5) {
				line = append(line, words[w.IntN(len(words))])
			}
			before = append(before, strings.Join(line, " "))
			if i%6 == 1 && w.IntN(2) == 0 {
				for at := w.IntN(len(line)); at < len(line) && w.IntN(3) > 0; at++ {
					line[at] = words[w.IntN(len(words))]
				}
				line = line[:1+w.IntN(len(line))]
			}
			after = append(after, strings.Join(line, " "))
		}
		text, want := strings.Join(before, "\n")+"\n", strings.Join(after, "\n")+"\n"
		if _, diff := Of(text, want); Words(diff) != "" {
			marked++
			for line := range strings.SplitSeq(Words(diff), "\n") {
				was, is := sides(line)
				if strings.Count(text, was+"\n") != 1 {
					t.Fatalf("%q was %q, which is not a line of\n%s", line, was, text)
				}
				text = strings.Replace(text, was+"\n", is+"\n", 1)
			}
			if text != want {
				t.Fatalf("%s\ngives\n%s\nwant\n%s", Words(diff), text, want)
			}
		}
	}
	if marked < 500 {
		t.Errorf("only %d texts had marked words", marked)
	}
}

// Marked words have no number of their line, so they are of a line that the text has once.
func TestNoMarkedWordsOfALineThatIsThereTwice(t *testing.T) {
	for again, marked := range map[string]bool{"total 0\n": false, "total 0": false, "total 2": true} {
		rest := strings.Repeat("another line\n", 20) + again
		kind, diff := Of("total 0\n"+rest, "total 1\n"+rest)
		if words := Words(diff); kind != Diff || (words != "") != marked {
			t.Errorf("with %q: %s %q, words %q", again, kind, diff, words)
		}
	}
}

func TestWords(t *testing.T) {
	for diff, want := range map[string]string{
		"":                              "",
		"@@ -7 +7 @@\n-a b c\n+a d c\n": "a [-b-] {+d+} c",
		"@@ -7 +7 @@\n-a\n+a b\n":       "a {+b+}",
		"@@ -7 +7 @@\n-a b\n+b\n":       "[-a-] b",
		"@@ -7 +7 @@\n-a\n+b\n@@ -9 +9 @@\n-\n+c\n": "[-a-] {+b+}\n[--] {+c+}",
		"@@ -7 +7 @@\n-a  b\n+a b\n":                "a [--] b",
		// Not a line for a line, not found by its words, without an end, or with signs of its own.
		"@@ -7,2 +7 @@\n-a\n-b\n+c\n":                         "",
		"@@ -7 +7,2 @@\n-a\n+b\n+c\n":                         "",
		"@@ -7 +6,0 @@\n-a\n":                                 "",
		"@@ -7,2 +7,3 @@\n a\n+b\n c\n":                       "",
		"@@ -6,3 +6,3 @@\n x\n-a\n+b\n x\n":                   "",
		"@@ -7 +7 @@\n-a\n\\ No newline at end of file\n+b\n": "",
		"@@ -7 +7 @@\n-a {+b\n+a c\n":                         "",
		"@@ -7 +7 @@\n-a\n+b [-\n":                            "",
	} {
		if got := Words(diff); got != want {
			t.Errorf("%q is %q, want %q", diff, got, want)
		}
	}
}

// Programs keep their state some objects deep, and most of it in one object. A change in 1 MB of it is still a patch.
func TestDeepStateHasPatches(t *testing.T) {
	deep := func(quantity int) string {
		return `{"app":{"entities":{"products":{"byId":` + deltatest.Cart(1<<20, quantity) + `}}}}`
	}
	kind, text := Of(deep(1), deep(2))
	if kind != Patch || len(text) > 200 || !sameJSON(t, apply(t, kind, deep(1), text), deep(2)) {
		t.Errorf("one change deep within 1 MB: %q of %d bytes", kind, len(text))
	}
}

// The test bounds memory. BenchmarkHostile measures the time, which the budget bounds.
func TestDocumentsMadeToBeExpensive(t *testing.T) {
	all := deltatest.Hostile()
	all["a long cart"] = [2]string{deltatest.Cart(1<<20, 1), deltatest.Cart(1<<20, 2)}
	for name, c := range all {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		kind, _ := Of(c[0], c[1])
		runtime.ReadMemStats(&after)
		used, most := after.TotalAlloc-before.TotalAlloc, uint64(4*max(len(c[0]), len(c[1]), 1<<20))
		if used > most {
			t.Errorf("%s: %d bytes for texts of %d and %d", name, used, len(c[0]), len(c[1]))
		}
		if kind == None && name == "a long cart" {
			t.Error("one change of 1 MB has no delta")
		}
	}
	if kind, _ := Of(strings.Repeat("x\n", MaxText), "x\n"); kind != None {
		t.Error("a text above the bound has a delta")
	}
}

// The page's own tool has the same vectors (js/page/webmcp/pointer.ts).
func TestPointers(t *testing.T) {
	file, err := os.ReadFile("testdata/pointers.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Text    string
		Found   map[string]string
		Nothing []string
	}
	if err := json.Unmarshal(file, &vectors); err != nil {
		t.Fatal(err)
	}
	vectors.Found[""] = vectors.Text
	for pointer, want := range vectors.Found {
		if got, err := At(vectors.Text, pointer); got != want || err != nil {
			t.Errorf("%q: got %s, %v, want %s", pointer, got, err, want)
		}
	}
	for _, pointer := range vectors.Nothing {
		if got, err := At(vectors.Text, pointer); err == nil {
			t.Errorf("%q: got %s, want nothing", pointer, got)
		}
	}
	for pointer, want := range map[string]string{
		"items":    `the pointer "items" does not begin with /`,
		"/items/2": `there is nothing at "/items/2": "/items" is an array of 2`,
		"/itms":    `there is nothing at "/itms": the document has "items", "a/b", "", "none", "s"`,
		"/s/x":     `there is nothing at "/s/x": "/s" is a string`,
	} {
		if _, err := At(vectors.Text, pointer); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", pointer, err, want)
		}
	}
	if _, err := At("plain", "/a"); err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("a text has a pointer: %v", err)
	}
	if _, err := At("{"+strings.Repeat(`"a name of some length":1,`, 1000)+`"z":1}`, "/y"); len(err.Error()) > 700 {
		t.Errorf("a long error: %d bytes", len(err.Error()))
	}
}

func TestLines(t *testing.T) {
	text := "one\ntwo\nthree"
	for _, c := range []struct{ span, want string }{
		{"1-2", "one\ntwo\n"}, {"2", "two\n"}, {"3-9", "three"}, {"2-", "two\nthree"},
		{"4-5", "it has 3 lines: there is no line 4"},
		{"0-1", `lines "0-1" is not a range such as 10-20`}, {"2-1", `lines "2-1" is not a range such as 10-20`},
		{"x", `lines "x" is not a range such as 10-20`},
	} {
		got, err := Lines(text, c.span)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.span, got, c.want)
		}
	}
}

func FuzzPages(f *testing.F) {
	f.Add("one\ntwo\nthree\nfour\n", 8)
	f.Add("éééééé", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(most, 1)
		var all strings.Builder
		for from := 0; ; {
			page, next := Page(text, from, most)
			if len(page) > max(most, 4) {
				t.Fatalf("a page of %d bytes, of at most %d", len(page), most)
			}
			if all.WriteString(page); next == 0 {
				break
			}
			if next <= from {
				t.Fatalf("after %d comes %d", from, next)
			}
			from = next
		}
		if all.String() != text {
			t.Fatalf("the pages of %q are %q", text, all.String())
		}
	})
}

func FuzzOf(f *testing.F) {
	f.Add(`{"a":[1,2,3],"b":{"c":1}}`, `{"a":[1,3],"b":{"c":2}}`)
	f.Add("a\nb\nc", "a\nc\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		if before == after {
			return
		}
		kind, text := Of(before, after)
		if kind == None {
			return
		}
		got := apply(t, kind, before, text)
		if kind == Diff && got != after || kind == Patch && !sameJSON(t, got, after) {
			t.Fatalf("%q with %q is %q, not %q", before, text, got, after)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	for _, size := range []int{6 << 10, 1 << 20} {
		before, after := deltatest.Cart(size, 1), deltatest.Cart(size, 2)
		b.Run(strconv.Itoa(len(before)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if kind, _ := Of(before, after); kind != Patch {
					b.Fatal("no patch")
				}
			}
		})
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, c := range deltatest.Hostile() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			mb := float64(len(c[0])+len(c[1])) / 2 / (1 << 20)
			for b.Loop() {
				Of(c[0], c[1])
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N)/mb, "ms/MB")
		})
	}
}

// Of a patch, the lines and the whole text the smallest is given.
func TestSmallestDelta(t *testing.T) {
	rows := func(from int) string {
		var all []string
		for i := range 40 {
			all = append(all, fmt.Sprintf(`["%d","a message of a log","info"]`, from+i))
		}
		return "[\n" + strings.Join(all, ",\n") + "\n]"
	}
	for name, c := range map[string]struct {
		before, after string
		want          Kind
	}{
		"a table that moves by a row": {rows(0), rows(1), Diff},
		"one cell":                    {rows(0), strings.Replace(rows(0), `"5",`, `"five",`, 1), Patch},
		"all rows":                    {rows(0), strings.ReplaceAll(rows(100), "message", "text"), None},
		"the same on one line": {strings.ReplaceAll(rows(0), "\n", ""), strings.ReplaceAll(rows(1), "\n", ""),
			None},
	} {
		kind, text := Of(c.before, c.after)
		if kind != c.want || len(text) >= len(c.after) {
			t.Errorf("%s: %s of %d bytes, want %s:\n%s", name, kind, len(text), c.want, text)
		}
	}
}
