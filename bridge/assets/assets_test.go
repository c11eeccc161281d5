package assets

import (
	"io/fs"
	"testing"
)

func TestInspectorIsThereOrNot(t *testing.T) {
	_, without := FS()
	files, err := Inspector()
	if err != without {
		t.Fatalf("Inspector() = %v, %v; FS() says %v", files, err, without)
	}
	if err != nil {
		return
	}
	for _, name := range []string{"index.html", "demo.html", "inspector.js", "inspector.css", "logo.svg"} {
		if info, err := fs.Stat(files, name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// make test runs it with and without -tags pagewire_assets.
func TestFilesAreAllThereOrNone(t *testing.T) {
	files, err := FS()
	if err != nil {
		if err != ErrNone || files != nil {
			t.Fatalf("FS() = %v, %v; without files it must return nil, ErrNone", files, err)
		}
		return
	}
	for _, name := range Names {
		info, err := fs.Stat(files, name)
		if err != nil {
			t.Error(err)
		} else if info.Size() == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(Names) {
		t.Errorf("FS holds %d files, Names %d", len(entries), len(Names))
	}
}
