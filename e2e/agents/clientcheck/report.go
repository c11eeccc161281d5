//go:build !js

package main

import (
	"fmt"
	"strings"
	"unicode"
)

// report returns the findings as Markdown. The client's own name and version are data.
func (c *checker) report() string {
	var b strings.Builder
	name := c.client
	if name == "" {
		name = "a client that has not named itself"
	}
	fmt.Fprintf(&b, "# What reached %s\n\n", cell(name))
	b.WriteString("| what it did | |\n|---|---|\n")
	row := func(what, how string) { fmt.Fprintf(&b, "| %s | %s |\n", what, how) }
	row("spoke", cell(orNone(c.version, "nothing yet")))
	row("can", cell(orNone(strings.Join(c.can, ", "), "nothing more")))
	for _, method := range strings.Fields(
		"tools/list resources/list resources/templates/list resources/read " +
			"resources/subscribe subscriptions/listen") {
		row("`"+method+"`", times(c.asked[method]))
	}
	row("was sent `resources/updated`", times(c.told))
	row("read what had changed", times(c.readAgain))
	row("the slow call", orNone(strings.Join(c.slow, "; "), "not made, or still running"))

	b.WriteString("\n| what its model was shown | |\n|---|---|\n")
	for _, p := range checkPlaces() {
		row(p.name, c.shown(p.name, "tools/call "+p.tool))
	}
	row(inSlow, c.shown(inSlow, "tools/call check_slow"))
	row(inProgress, c.shown(inProgress, "tools/call check_slow"))
	row(inLate, c.shown(inLate, "tools/call check_late"))
	row(inResource, c.shown(inResource, "resources/read"))
	row(inInstructions, c.shown(inInstructions, ""))
	if !c.reported {
		b.WriteString(
			"\nIts model has not called check_report: nothing is known of what it was shown. Ask it this:\n\n" +
				"> " + checkPrompt + "\n")
	}
	return b.String()
}

// shown says whether a place's word came back. needs is the client's request that the place depends
// on.
func (c *checker) shown(place, needs string) string {
	switch {
	case c.seen[c.words[place]]:
		return "yes"
	case needs != "" && c.asked[needs] == 0:
		return "was not asked for"
	case !c.reported:
		return "not known"
	}
	return "no"
}

func times(n int) string {
	switch n {
	case 0:
		return "no"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func orNone(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

// cell returns a text as one cell of a table, without characters that act upon a terminal.
func cell(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return strings.NewReplacer("|", `\|`, "`", "'", "<", "&lt;").Replace(text)
}
