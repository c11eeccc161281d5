package main

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"maps"
	"slices"
	"time"
)

// animate encodes frames as a GIF that plays for ever: the one form of moving picture that every forge shows. All
// frames have one palette, of the colours that are most frequent in them: interfaces have few, and the edges of
// letters. A frame holds the rectangle that differs from the one before, and of that only the pixels that do.
func animate(frames []frame) ([]byte, error) {
	if len(frames) == 0 {
		return nil, errors.New("there is no frame")
	}
	palette, index := quantize(frames, 255)
	colors, transparent := append(palette, color.RGBA{}), uint8(len(palette))
	movie := &gif.GIF{Config: image.Config{ColorModel: colors, Width: width, Height: height}}
	var before *image.Paletted
	for _, f := range frames {
		whole := image.NewPaletted(image.Rect(0, 0, width, height), colors)
		for y := range height {
			for x := range width {
				whole.SetColorIndex(x, y, index[rgba(f.image.At(x, y))])
			}
		}
		shown := int(f.shown / (10 * time.Millisecond))
		changed := difference(before, whole, transparent)
		if changed.Rect.Empty() {
			movie.Delay[len(movie.Delay)-1] += shown
			continue
		}
		movie.Image = append(movie.Image, changed)
		movie.Delay = append(movie.Delay, shown)
		movie.Disposal = append(movie.Disposal, gif.DisposalNone)
		before = whole
	}
	var out bytes.Buffer
	err := gif.EncodeAll(&out, movie)
	return out.Bytes(), err
}

// poster encodes the frame that tells the story by itself.
func poster(frames []frame) ([]byte, error) {
	i := slices.IndexFunc(frames, func(f frame) bool { return f.poster })
	if i < 0 {
		return nil, errors.New("no frame is the poster")
	}
	palette, index := quantize(frames[i:i+1], 256)
	still := image.NewPaletted(image.Rect(0, 0, width, height), palette)
	for y := range height {
		for x := range width {
			still.SetColorIndex(x, y, index[rgba(frames[i].image.At(x, y))])
		}
	}
	var out bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, still)
	return out.Bytes(), err
}

func rgba(c color.Color) color.RGBA { return color.RGBAModel.Convert(c).(color.RGBA) }

// quantize takes the n most frequent colours of frames for a palette, and finds for every colour the nearest of these.
func quantize(frames []frame, n int) (color.Palette, map[color.RGBA]uint8) {
	counts := map[color.RGBA]int{}
	for _, f := range frames {
		for y := range height {
			for x := range width {
				counts[rgba(f.image.At(x, y))]++
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return counts[b] - counts[a] })
	palette := color.Palette{}
	for _, c := range sorted[:min(len(sorted), n)] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	for c := range counts {
		index[c] = uint8(palette.Index(c))
	}
	return palette, index
}

// difference is the rectangle in which two frames differ, with one index where they do not. Without a frame before it
// is all of the frame.
func difference(before, now *image.Paletted, same uint8) *image.Paletted {
	if before == nil {
		return now
	}
	var rect image.Rectangle
	for y := range height {
		for x := range width {
			if before.ColorIndexAt(x, y) != now.ColorIndexAt(x, y) {
				rect = rect.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	changed := image.NewPaletted(rect, now.Palette)
	for y := rect.Min.Y; y < rect.Max.Y; y++ {
		for x := rect.Min.X; x < rect.Max.X; x++ {
			if i := now.ColorIndexAt(x, y); i != before.ColorIndexAt(x, y) {
				changed.SetColorIndex(x, y, i)
			} else {
				changed.SetColorIndex(x, y, same)
			}
		}
	}
	return changed
}
