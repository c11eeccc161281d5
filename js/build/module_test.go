package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// module makes one with the given segments, between two other sections.
func moduleOf(parts ...segment) []byte {
	return join([]section{{1, []byte{0}}, {dataSection, appendSegments(nil, parts)}, {customSection, []byte("\x01x")}})
}

// memory is what instantiating a module leaves in its memory.
func memory(t *testing.T, module []byte) []byte {
	t.Helper()
	all, err := sections(module)
	if err != nil {
		t.Fatal(err)
	}
	var filled []byte
	for _, s := range all {
		if s.id != dataSection {
			continue
		}
		parts, _, err := segments(s.body)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			filled = append(filled, make([]byte, max(0, part.end()-len(filled)))...)
			copy(filled[part.at:], part.data)
		}
	}
	return filled
}

func TestSegmentsAreMergedWhereFewZerosLieBetween(t *testing.T) {
	before := moduleOf(segment{70_000, []byte("far")}, segment{5, []byte("a")}, segment{6, []byte("b")},
		segment{7 + gap, []byte("c")}, segment{9 + 2*gap, []byte("d")})
	after, err := mergeSegments(before)
	if err != nil {
		t.Fatal(err)
	}
	want := moduleOf(segment{5, slices.Concat([]byte("ab"), make([]byte, gap), []byte("c"))},
		segment{9 + 2*gap, []byte("d")}, segment{70_000, []byte("far")})
	if !bytes.Equal(after, want) {
		t.Errorf("got  %q\nwant %q", after, want)
	}
	if !bytes.Equal(memory(t, after), memory(t, before)) {
		t.Error("the memory is another one")
	}
}

func TestSegmentsThatMeanMoreAreLeft(t *testing.T) {
	passive := join([]section{{dataSection, []byte{1, 1, 1, 'x'}}})
	over := moduleOf(segment{5, []byte("abc")}, segment{6, []byte("d")})
	global := join([]section{{dataSection, []byte{1, 0, 0x23, 0, end, 1, 'x'}}})
	for name, module := range map[string][]byte{"passive": passive, "over another": over, "at a global": global} {
		if got, err := mergeSegments(module); err != nil || !bytes.Equal(got, module) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestAModuleThatIsCutOffIsRefused(t *testing.T) {
	whole := moduleOf(segment{5, []byte("abc")})
	for n := range len(whole) {
		got, err := mergeSegments(whole[:n])
		if err == nil && !bytes.Equal(got, whole[:n]) {
			t.Errorf("%d of %d bytes became %q", n, len(whole), got)
		}
	}
	huge := slices.Concat(wasmHeader, []byte{dataSection}, binary.AppendUvarint(nil, 1<<40))
	if _, err := mergeSegments(huge); err == nil {
		t.Error("a section of 1 TB was found")
	}
}

// What a page loads is the same as what the toolchain wrote, in few segments.
func TestTheCoreIsInFewSegments(t *testing.T) {
	for _, name := range []string{"pagewire.wasm", "pagewire.views.wasm"} {
		module, err := os.ReadFile(filepath.Join("../../dist", name))
		if err != nil {
			t.Fatal(err)
		}
		all, err := sections(module)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.id != dataSection {
				continue
			}
			if parts, _, err := segments(s.body); err != nil || len(parts) > 100 {
				t.Errorf("%s has %d segments, %v", name, len(parts), err)
			}
		}
	}
}
