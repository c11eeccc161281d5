package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/e2e/bench/figure"
)

func machine(chromium context.Context) string {
	name := "a browser"
	if v, err := chromedp.CallBrowser(chromium, cdpbrowser.GetVersion, cdp.Empty{}); err == nil {
		name = v.Product
	}
	return figure.Machine() + ", " + name
}

var signs = strings.NewReplacer("<=", "≤", ">=", "≥", " x ", " × ")

func (r Result) row() figure.Row {
	row := figure.Row{Name: r.Name, Figure: r.Who[0].text(r.Unit), Goal: signs.Replace(r.Goal),
		Missed: r.Met != nil && !*r.Met}
	if r.Ratio > 0 {
		row.Ratio = figure.Ratio(r.Ratio)
	}
	var all []string
	for _, m := range r.Who {
		text := m.Name + ": " + m.text(r.Unit)
		if m.Rounds != nil && m.Least != m.Most {
			text += fmt.Sprintf(" (%s to %s)", figure.Number(m.Least), figure.Number(m.Most))
		}
		if m.Lost > 0 && m.Failed == "" {
			text += fmt.Sprintf(", failed in %d rounds", m.Lost)
		}
		all = append(all, text)
		if m.Name == r.Of {
			row.Beside = m.text(r.Unit) + ", " + m.Name
		}
	}
	row.All = strings.Join(all, "; ")
	return row
}

func (m Measured) text(unit string) string {
	switch {
	case m.Failed != "":
		return "failed"
	case m.Absent:
		return "does not offer"
	}
	return figure.Quantity(m.Median, unit)
}

// weights returns the rows of dist/sizes.json, which make size has written, and the compiler of the core.
func weights() (rows []figure.Row, core string, err error) {
	text, err := os.ReadFile("dist/sizes.json")
	if err != nil {
		return nil, "", fmt.Errorf("%w: run make size", err)
	}
	var file struct {
		Core    string
		Weights []struct {
			Name                      string
			Raw, Gzip, Brotli, Budget float64
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, "", fmt.Errorf("dist/sizes.json: %w", err)
	}
	whole := func(bytes float64) string { return figure.Grouped(fmt.Sprint(int(bytes))) + " B" }
	for _, w := range file.Weights {
		row := figure.Row{Name: w.Name + ", brotli", Figure: whole(w.Brotli),
			All: "raw " + whole(w.Raw) + ", gzip " + whole(w.Gzip)}
		if w.Budget > 0 {
			row.Goal, row.Missed = "≤ "+whole(w.Budget), w.Brotli > w.Budget
		}
		rows = append(rows, row)
	}
	return rows, file.Core, nil
}
