package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

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

// weights returns the rows of dist/sizes.json, which make size has written, and the compiler of the
// core.
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
