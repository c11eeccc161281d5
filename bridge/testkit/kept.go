package testkit

import (
	"reflect"
	"strings"
	"unsafe"
)

// Kept counts the elements of all maps, slices and channels that are reached from a pointer, by the
// fields that have them: what grows there with each one that comes and goes is a leak. It sees no
// variables of functions, and no bytes. Nothing may use what it reads.
func Kept(from any) map[string]int {
	k := kept{counts: map[string]int{}, seen: map[place]bool{}}
	k.walk("", reflect.ValueOf(from))
	return k.counts
}

type place struct {
	at unsafe.Pointer
	of reflect.Type
}

type kept struct {
	counts map[string]int
	seen   map[place]bool
}

func (k *kept) walk(name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsValid() && !v.IsNil() {
			k.walk(name, addressable(v.Elem()))
		}
	case reflect.Pointer:
		at := place{v.UnsafePointer(), v.Type()}
		if foreign(v.Type().Elem()) || v.IsNil() || k.seen[at] {
			return
		}
		k.seen[at] = true
		k.walk(name, v.Elem())
	case reflect.Struct:
		k.fields(v)
	case reflect.Array, reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if v.Kind() == reflect.Slice {
			k.counts[name] += v.Len()
		}
		for i := range v.Len() {
			k.walk(name, v.Index(i))
		}
	case reflect.Chan:
		k.counts[name] += v.Len()
	case reflect.Map:
		if v.IsNil() || k.seen[place{v.UnsafePointer(), v.Type()}] {
			return
		}
		k.seen[place{v.UnsafePointer(), v.Type()}] = true
		k.counts[name] += v.Len()
		for key, value := range v.Seq2() {
			k.walk(name, addressable(key))
			k.walk(name, addressable(value))
		}
	}
}

func (k *kept) fields(v reflect.Value) {
	if load := v.Addr().MethodByName("Load"); load.IsValid() && v.Type().PkgPath() == "sync/atomic" {
		if value := load.Call(nil)[0]; value.Kind() == reflect.Pointer {
			k.walk(v.Type().String(), value)
		}
		return
	}
	for i := range v.NumField() {
		field := v.Field(i)
		open := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
		k.walk(v.Type().String()+"."+v.Type().Field(i).Name, open)
	}
}

func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	return to
}

// foreign reports whether a type is of a package that keeps what it likes.
func foreign(t reflect.Type) bool {
	path := t.PkgPath()
	return path == "testing" || path == "log/slog" || path == "time" || path == "reflect" ||
		strings.HasPrefix(path, "github.com/") && !strings.HasPrefix(path, "github.com/pagewire/")
}
