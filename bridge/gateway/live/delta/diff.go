package delta

import (
	"regexp"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/pagewire/pagewire/bridge/wire"
)

// context is the number of unchanged lines around a change in a diff: the model has the others. A
// change of a line that is there once has none: that line says where it is.
const context = 1

// diff returns a unified diff, or "" if it is above the budget or longer than after.
func diff(before, after string, left *budget) string {
	from, behind := between(before, after)
	first := strings.Count(before[:from], "\n")
	a, ok := lines(before[from:len(before)-behind], left)
	b, fits := lines(after[from:len(after)-behind], left)
	if !ok || !fits || !left.compare(len(a)+len(b), len(before)+len(after)-2*(from+behind)) {
		return ""
	}
	edits := lcs.DiffLines(a, b)
	out := wire.Text(nil)
	for i := 0; i < len(edits); {
		next := i + 1
		for next < len(edits) && edits[next].Start-edits[next-1].End <= 2*context {
			next++
		}
		around := context
		if first := edits[i]; first.Start < first.End && left.time(len(before)) {
			line := a[first.Start] // it may be there again as the last line, without its end
			if strings.Count(before, line) == 1 && !strings.HasSuffix(before, line[:len(line)-1]) {
				around = 0
			}
		}
		if out, ok = hunk(out, a, b, edits[i:next], around, first, len(after)); !ok {
			return ""
		}
		i = next
	}
	return str(out)
}

// between returns the number of equal bytes, in whole lines, before and after the difference,
// without a diff's context.
func between(before, after string) (from, behind int) {
	same := commonBytes(raw(before), raw(after))
	begin := func(at int) int { return strings.LastIndexByte(before[:at], '\n') + 1 }
	from = begin(same[0])
	rest := before[len(before)-same[1]:]
	_, rest, _ = strings.Cut(rest, "\n")
	for range context {
		from = begin(max(from-1, 0))
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return from, len(rest)
}

// lines splits a text; each line has its end.
func lines(text string, left *budget) (list []string, ok bool) {
	n := strings.Count(text, "\n") + 1
	if n > maxParts || !left.memory(16*n) {
		return nil, false
	}
	list = make([]string, 0, n)
	for line := range strings.Lines(text) {
		list = append(list, line)
	}
	return list, true
}

// hunk writes edits that are close to each other, with so many unchanged lines around them. first
// is the number of lines before the texts. It returns false if the diff would be longer than most
// bytes.
func hunk(out wire.Text, a, b []string, edits []lcs.Diff, around, first,
	most int) (wire.Text, bool) {
	start, end := edits[0], edits[len(edits)-1]
	above, below := min(around, start.Start), min(around, len(a)-end.End)
	at := start.Start - above
	out = span(out.Raw("@@ -"), first+at, end.End+below-at)
	out = span(out.Raw(" +"), first+start.ReplStart-above,
		end.ReplEnd+below-start.ReplStart+above).Raw(" @@\n")
	full := false
	write := func(mark string, list []string) {
		for _, line := range list {
			if full = full || len(out)+len(line) >= most; full {
				return
			}
			out = room(out, len(line)+64, most).Raw(mark).Raw(line)
			if !strings.HasSuffix(line, "\n") {
				out = out.Raw("\n\\ No newline at end of file\n")
			}
		}
	}
	for _, e := range edits {
		write(" ", a[at:e.Start])
		write("-", a[e.Start:e.End])
		write("+", b[e.ReplStart:e.ReplEnd])
		at = e.End
	}
	write(" ", a[at:end.End+below])
	return out, !full
}

// span writes a range of n lines. behind is the number of lines before it.
func span(out wire.Text, behind, n int) wire.Text {
	switch n {
	case 0:
		return out.Int(behind).Raw(",0")
	case 1:
		return out.Int(behind + 1)
	}
	return out.Int(behind + 1).Raw(",").Int(n)
}

// replaced is a hunk that replaces a line by a line.
var replaced = regexp.MustCompile(`^@@.*\n-(.*)\n\+(.*)\n`)

// signs are those of marked words.
var signs = regexp.MustCompile(`\[-|-\]|\{\+|\+\}`)

// Words returns a diff of Of as the lines that it replaces, with the words that differ marked as
// git's --word-diff marks them: [-old-] {+new+}. It returns "" if the diff has other hunks, or if a
// line has one of the signs. The text has each line once, so it needs no number.
func Words(diff string) string {
	var out []string
	for diff != "" {
		hunk := replaced.FindStringSubmatch(diff)
		if hunk == nil || signs.MatchString(hunk[0]) {
			return ""
		}
		a, b := strings.Split(hunk[1], " "), strings.Split(hunk[2], " ")
		same := common(a, b)
		line, behind := b[:same[0]:same[0]], b[len(b)-same[1]:]
		if old := a[same[0] : len(a)-same[1]]; len(old) > 0 {
			line = append(line, "[-"+strings.Join(old, " ")+"-]")
		}
		if added := b[same[0] : len(b)-same[1]]; len(added) > 0 {
			line = append(line, "{+"+strings.Join(added, " ")+"+}")
		}
		out, diff = append(out, strings.Join(append(line, behind...), " ")), diff[len(hunk[0]):]
	}
	return strings.Join(out, "\n")
}
