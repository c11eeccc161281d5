package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A file is one of an archive.
type file struct {
	name string // with slashes
	mode fs.FileMode
	text []byte
}

const plain, program fs.FileMode = 0o644, 0o755

// below puts files into a directory.
func below(dir string, files []file) []file {
	moved := make([]file, len(files))
	for i, f := range files {
		moved[i] = file{path.Join(dir, f.name), f.mode, f.text}
	}
	return moved
}

// filesOf reads a directory, in the order of names.
func filesOf(dir string) (files []file, err error) {
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		files = append(files, file{filepath.ToSlash(rel), plain, text})
		return err
	})
	return files, err
}

// packed makes the archive that the name asks for. The same files and time give the same bytes: it has no owner, and no
// other time.
func packed(name string, files []file, at time.Time) ([]byte, error) {
	if strings.HasSuffix(name, ".zip") {
		return zipped(files, at)
	}
	return tarred(files, at)
}

func tarred(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		header := tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.text)),
			ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	err = errors.Join(w.Close(), z.Close())
	return out.Bytes(), err
}

func zipped(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		header := zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		w, err := z.CreateHeader(&header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

// unpacked reads an archive that packed has made.
func unpacked(name string, archive []byte) (files []file, err error) {
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, f := range z.File {
			text, err := fs.ReadFile(z, f.Name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			files = append(files, file{f.Name, f.Mode(), text})
		}
		return files, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for t := tar.NewReader(z); ; {
		header, err := t.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text, err := io.ReadAll(t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, file{header.Name, fs.FileMode(header.Mode), text})
	}
}
