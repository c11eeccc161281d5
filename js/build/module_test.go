package main

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

func TestStripLeavesWhatAnEngineNeeds(t *testing.T) {
	code, data := section{codeSection, []byte{0}}, section{dataSection, []byte("\x00")}
	name := section{customSection, []byte("\x04name")}
	got, err := strip(join([]section{name, code, data, name}))
	if want := join([]section{code, data}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestAModuleThatIsCutOffIsRefused(t *testing.T) {
	whole := join([]section{{dataSection, []byte("abc")}})
	for n := range len(whole) {
		got, err := strip(whole[:n])
		if err == nil && !bytes.Equal(got, whole[:n]) {
			t.Errorf("%d of %d bytes became %q", n, len(whole), got)
		}
	}
	huge := slices.Concat(wasmHeader, []byte{dataSection}, binary.AppendUvarint(nil, 1<<40))
	if _, err := strip(huge); err == nil {
		t.Error("a section of 1 TB was found")
	}
}
