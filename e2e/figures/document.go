package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/e2e/bench/figure"
)

var (
	// A part: its name, and what is between the markers.
	partPattern = regexp.MustCompile(
		`(?s)(<!-- figures: ([a-z]+), written by make figures -->\n)(.*?)(<!-- end of figures -->)`)
	partMarker = regexp.MustCompile(`<!-- (figures: |end of figures)`)
	// A number in a sentence: the number, its unit, asterisks behind it, and the figure's name.
	markPattern = regexp.MustCompile(
		`(\d[\d,]*(?:\.\d+)?)( ?)(bytes|KB|MB|GB|B|us|ms|s|×|%|)(\*{0,3})<!-- figure: (.+?) -->`)
	markMarker = regexp.MustCompile(`<!-- figure: `)
)

// rewrite returns a document with every marked number as the book has it.
func (b *book) rewrite(text string) (string, error) {
	count := func(p *regexp.Regexp) int { return len(p.FindAllString(text, -1)) }
	if parts, markers := count(partPattern), count(partMarker); markers != 2*parts {
		return "", fmt.Errorf("%d markers of parts make %d parts: each begins with <!-- figures: NAME, written by make "+
			"figures --> and ends with <!-- end of figures -->, both on lines of their own", markers, parts)
	}
	if marks, markers := count(markPattern), count(markMarker); marks != markers {
		return "", fmt.Errorf("%d of %d comments <!-- figure: NAME --> stand directly behind a number with its unit",
			marks, markers)
	}
	var errs []error
	text = partPattern.ReplaceAllStringFunc(text, func(whole string) string {
		m := partPattern.FindStringSubmatch(whole)
		body, err := b.part(m[2])
		if err != nil {
			errs = append(errs, err)
			return whole
		}
		return m[1] + "\n" + strings.Trim(body, "\n") + "\n\n" + m[4]
	})
	text = markPattern.ReplaceAllStringFunc(text, func(whole string) string {
		m := markPattern.FindStringSubmatch(whole)
		number, err := b.number(m[5], m[1], m[3])
		if err != nil {
			errs = append(errs, err)
			return whole
		}
		return number + whole[len(m[1]):]
	})
	return text, errors.Join(errs...)
}

// scales are the units of documents, by the units of figures: how many of the latter one of the former is.
var scales = map[string]map[string]float64{
	"B":  {"B": 1, "bytes": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9},
	"MB": {"KB": 1e-3, "MB": 1, "GB": 1e3},
	"us": {"us": 1, "ms": 1e3, "s": 1e6},
	"ms": {"us": 1e-3, "ms": 1, "s": 1e3},
	"s":  {"ms": 1e-3, "s": 1},
	"×":  {"×": 1},
	"%":  {"%": 1},
	"":   {"": 1},
}

// number is a figure in a unit, with as many decimals as the number that stands there.
func (b *book) number(name, there, unit string) (string, error) {
	q, err := b.find(name)
	if err != nil {
		return "", err
	}
	scale, ok := scales[q.Unit][unit]
	if unit == "" {
		scale, ok = 1, true // the unit is elsewhere: in a table's head, say
	}
	if !ok {
		return "", fmt.Errorf("the figure %q is in %q, and cannot be written in %q", name, q.Unit, unit)
	}
	_, decimals, _ := strings.Cut(there, ".")
	s := strconv.FormatFloat(q.Value/scale, 'f', len(decimals), 64)
	if q.Value != 0 && strings.Trim(s, "0.") == "" {
		return "", fmt.Errorf("the figure %q is %g %s: with %d decimals nothing of it is left", name, q.Value, q.Unit,
			len(decimals))
	}
	return figure.Grouped(s), nil
}

var (
	// What holds no figures of the project's: code, comments that mark, links.
	fencePattern = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codePattern  = regexp.MustCompile("`[^`\n]*`")
	// A number with a unit that is measured. Limits are in MiB and the like, or are said to be limits.
	unitPattern = regexp.MustCompile(
		`\d[\d,.]*(?: ?(?:KB|MB|GB|us|µs|ms|×)\b| ?×| times (?:as|less|more|faster|smaller))`)
	limitMark = "<!-- limit -->"
)

// unmarked are the numbers with a unit that no generator keeps: neither in a part, nor marked as a figure or as a
// limit.
func unmarked(text string) []string {
	for _, held := range []*regexp.Regexp{fencePattern, codePattern, partPattern, markPattern} {
		text = held.ReplaceAllString(text, "")
	}
	var all []string
	for _, at := range unitPattern.FindAllStringIndex(text, -1) {
		if !strings.HasPrefix(strings.TrimLeft(text[at[1]:], "*"), limitMark) {
			line := 1 + strings.LastIndex(text[:at[0]], "\n")
			all = append(all, strings.TrimSpace(text[line:at[1]]))
		}
	}
	return all
}
