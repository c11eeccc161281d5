package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// A Report is one run, as it is in bench.json.
type Report struct {
	Began   time.Time
	Took    float64 // s
	Rounds  int
	Short   bool
	Machine string
	Commit  string
	Command string
	Rows    []Result
}

// machine says on what the run was.
func machine(chromium context.Context) string {
	name := "a browser"
	if v, err := chromedp.CallBrowser(chromium, cdpbrowser.GetVersion, cdp.Empty{}); err == nil {
		name = v.Product
	}
	return figure.Machine() + ", " + name
}

// ratios writes a line for each row: Pagewire, what it is compared with, and the goal.
func (r *Report) ratios(w io.Writer) {
	fmt.Fprintf(w, "\nPagewire against the best peer of the same run; medians of %d rounds\n\n", r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ratio\twhat\tPagewire\tagainst\t\tgoal")
	for _, row := range r.Rows {
		if row.Curve {
			continue
		}
		us, ratio, them := row.Who[0], "", ""
		if row.Ratio > 0 {
			ratio = figure.Ratio(row.Ratio)
		}
		for _, m := range row.Who {
			if m.Name == row.Of {
				them = figure.Quantity(m.Median, row.Unit)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", ratio, row.Name, us.text(row.Unit), row.Of, them, row.verdict())
	}
	t.Flush()
}

func (r Result) verdict() string {
	switch {
	case r.Goal == "":
		return ""
	case r.Met == nil:
		return r.Goal + ", not known"
	case *r.Met:
		return r.Goal + ", met"
	}
	return r.Goal + ", NOT MET"
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

// figures writes what every contender did.
func (r *Report) figures(w io.Writer) {
	fmt.Fprint(w, "\nEvery contender: median (least to most)\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range r.Rows {
		name := row.Name
		for _, m := range row.Who {
			spread := ""
			if m.Rounds != nil && m.Least != m.Most {
				spread = fmt.Sprintf("(%s to %s)", figure.Number(m.Least), figure.Number(m.Most))
			}
			if m.Lost > 0 && m.Failed == "" {
				spread += fmt.Sprintf(" failed in %d", m.Lost)
			}
			value := m.text(row.Unit)
			if m.Points != nil {
				value = ""
				for _, p := range m.Points {
					value += fmt.Sprintf("%s: %s  ", figure.Number(p.X), figure.Number(p.Y))
				}
				spread = row.Unit + "; " + m.Growth
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, m.Name, value, spread)
			name = ""
		}
	}
	t.Flush()
}

//go:embed report.html
var reportPage []byte

// write puts bench.json and index.html into a directory. The page holds the report and the charting library itself.
func (r *Report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	page := reportPage
	for mark, file := range map[string]string{"/* uPlot.js */": "uPlot.iife.min.js",
		"/* uPlot.css */": "uPlot.min.css"} {
		library, err := os.ReadFile("js/node_modules/uplot/dist/" + file)
		if err != nil {
			return fmt.Errorf("%w (make bench installs it)", err)
		}
		page = bytes.Replace(page, []byte(mark), library, 1)
	}
	small, err := json.Marshal(r) // it escapes what would end a script
	if err != nil {
		return err
	}
	page = bytes.Replace(page, []byte("null /* report */"), small, 1)
	return os.WriteFile(filepath.Join(dir, "index.html"), page, 0o644)
}

// photograph writes the page of bench.json anew, and takes a picture of its upper part.
func photograph(ctx context.Context, dir, file string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err != nil {
		return err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("bench.json: %w", err)
	}
	if err := r.write(dir); err != nil {
		return err
	}
	chromium, closeBrowser,
		err := browser.Launch(ctx,
		browser.Options{Flags: []string{offline, "--window-size=1180,1640", "--hide-scrollbars"}})
	if err != nil {
		return err
	}
	defer closeBrowser()
	if err := chromedp.Do(chromium, chromedp.Navigate("file://"+filepath.Join(dir, "index.html"))); err != nil {
		return err
	}
	picture, err := chromedp.Run(chromium, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	if picture, err = smaller(picture); err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o644)
}

// smaller reduces a PNG to its 64 most frequent colours: a report has few, and the edges of letters.
func smaller(picture []byte) ([]byte, error) {
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	bounds := decoded.Bounds()
	counts := map[color.Color]int{}
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			counts[decoded.At(x, y)]++
		}
	}
	colors := color.Palette(slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return counts[b] - counts[a]
	}))
	palette := colors[:min(len(colors), 64)]
	index := map[color.Color]uint8{}
	for _, c := range colors {
		index[c] = uint8(palette.Index(c))
	}
	reduced := image.NewPaletted(bounds, palette)
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			reduced.SetColorIndex(x, y, index[decoded.At(x, y)])
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduced)
	return out.Bytes(), err
}
