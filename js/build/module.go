package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
)

// A section is a part of a WebAssembly module, as it stands in the file.
type section struct {
	id   byte
	body []byte
}

// Ids of sections, of which a module has each once, but for custom ones.
const (
	customSection = 0
	importSection = 2
	codeSection   = 10
	dataSection   = 11
)

var wasmHeader = []byte("\x00asm\x01\x00\x00\x00")

var errModule = errors.New("not a WebAssembly module, or one that is cut off")

// sections splits a module. The bodies are slices of it.
func sections(module []byte) ([]section, error) {
	if !bytes.HasPrefix(module, wasmHeader) {
		return nil, errModule
	}
	r := reader{rest: module[len(wasmHeader):]}
	var all []section
	for len(r.rest) > 0 {
		id := r.byte()
		all = append(all, section{id, r.bytes(r.number())})
	}
	return all, r.err
}

// join is the inverse of sections.
func join(all []section) []byte {
	module := slices.Clone(wasmHeader)
	for _, s := range all {
		module = append(module, s.id)
		module = binary.AppendUvarint(module, uint64(len(s.body)))
		module = append(module, s.body...)
	}
	return module
}

// A reader takes numbers and bytes off the front of rest. After an error it returns zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail() {
	r.rest, r.err = nil, errModule
}

func (r *reader) byte() byte {
	b := r.bytes(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.fail()
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// number takes an unsigned number of at most 32 bits, which is also how counts and lengths are written.
func (r *reader) number() int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > 1<<32-1 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

// strip leaves out what no engine needs: the custom sections. TinyGo keeps the names of functions whatever it is asked
// for, 12.6 KB of the core and 2.0 KB of its brotli.
func strip(module []byte) ([]byte, error) {
	all, err := sections(module)
	if err != nil {
		return nil, err
	}
	return join(slices.DeleteFunc(all, func(s section) bool { return s.id == customSection })), nil
}
