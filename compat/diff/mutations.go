package diff

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// mutation is one change to a request that is otherwise right: a field, and what it is set to.
type mutation struct {
	label string
	apply func(request reflect.Value)
}

// The last byte of ids that are nobody's.
var strangeID = [16]byte{15: 9}

const missingTopic = "gen-missing"

var idType = reflect.TypeFor[[16]byte]()

// mutations gives the changes that show on the wire in the version of the request, each once. Fields in skip ("Name" anywhere,
// or "Name=value") are left alone.
func mutations(request kmsg.Request, skip []string) []mutation {
	w := &walker{root: reflect.ValueOf(request).Elem(), skip: skip}
	w.fields(w.root, "", nil)
	seen := [][]byte{request.AppendTo(nil)}
	var visible []mutation
	for _, m := range w.found {
		changed := clone(request)
		m.apply(reflect.ValueOf(changed).Elem())
		encoded := changed.AppendTo(nil)
		isNew := true
		for _, s := range seen {
			isNew = isNew && !bytes.Equal(s, encoded)
		}
		if isNew {
			seen = append(seen, encoded)
			visible = append(visible, m)
		}
	}
	return visible
}

// clone copies a request with all that it points to.
func clone(request kmsg.Request) kmsg.Request {
	copied := kmsg.RequestForKey(request.Key())
	copied.SetVersion(request.GetVersion())
	reflect.ValueOf(copied).Elem().Set(deep(reflect.ValueOf(request).Elem()))
	return copied
}

func deep(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[kmsg.Tags]() {
			return out
		}
		for i := range v.NumField() {
			out.Field(i).Set(deep(v.Field(i)))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(deep(v.Index(i)))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(deep(v.Elem()))
		}
	default:
		out.Set(v)
	}
	return out
}

type walker struct {
	root  reflect.Value
	skip  []string
	found []mutation
}

// add notes that the value at a path is set to something.
func (w *walker) add(label string, path []int, shown string, set func(v reflect.Value)) {
	name := label[strings.LastIndexByte(label, '.')+1:]
	for _, s := range w.skip {
		if s == name || s == name+"="+shown {
			return
		}
	}
	path = append([]int{}, path...)
	w.found = append(w.found, mutation{label + "=" + shown, func(root reflect.Value) { set(locate(root, path)) }})
}

// locate follows a path: the index of a field, or element for what a pointer or the first of a list holds.
func locate(v reflect.Value, path []int) reflect.Value {
	for _, step := range path {
		switch {
		case step != element:
			v = v.Field(step)
		case v.Kind() == reflect.Pointer:
			v = v.Elem()
		default:
			v = v.Index(0)
		}
	}
	return v
}

const element = -1

func (w *walker) fields(v reflect.Value, label string, path []int) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		at := append(append([]int{}, path...), i)
		switch {
		case field.Name == "Version":
		case field.Type == reflect.TypeFor[kmsg.Tags]():
			w.add(label+"tags", at, "unknown", func(v reflect.Value) {
				v.Addr().Interface().(*kmsg.Tags).Set(4000, []byte("a field of tomorrow"))
			})
		default:
			w.value(v.Field(i), label+field.Name, at)
		}
	}
}

func (w *walker) value(v reflect.Value, label string, path []int) {
	switch v.Kind() {
	case reflect.Bool:
		w.add(label, path, fmt.Sprint(!v.Bool()), func(v reflect.Value) { v.SetBool(!v.Bool()) })
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		for _, n := range numbers(v.Kind()) {
			w.add(label, path, fmt.Sprint(n), func(v reflect.Value) { v.SetInt(n) })
		}
	case reflect.Float64:
		w.add(label, path, "-1", func(v reflect.Value) { v.SetFloat(-1) })
	case reflect.String:
		for _, s := range texts(label) {
			w.add(label, path, shorten(s), func(v reflect.Value) { v.SetString(s) })
		}
	case reflect.Pointer:
		w.pointer(v, label, path)
	case reflect.Array:
		if v.Type() == idType {
			w.add(label, path, "none", func(v reflect.Value) { v.Set(reflect.ValueOf([16]byte{})) })
			w.add(label, path, "strange", func(v reflect.Value) { v.Set(reflect.ValueOf(strangeID)) })
		}
	case reflect.Slice:
		w.list(v, label, path)
	case reflect.Struct:
		w.fields(v, label+".", path)
	}
}

func (w *walker) pointer(v reflect.Value, label string, path []int) {
	w.add(label, path, "null", func(v reflect.Value) { v.SetZero() })
	if v.Type().Elem().Kind() == reflect.String {
		for _, s := range texts(label) {
			w.add(label, path, shorten(s), func(v reflect.Value) { v.Set(reflect.ValueOf(&s)) })
		}
		return
	}
	if !v.IsNil() {
		w.value(v.Elem(), label, append(append([]int{}, path...), element))
	}
}

func (w *walker) list(v reflect.Value, label string, path []int) {
	w.add(label, path, "null", func(v reflect.Value) { v.SetZero() })
	w.add(label, path, "[]", func(v reflect.Value) { v.Set(reflect.MakeSlice(v.Type(), 0, 0)) })
	if v.Type().Elem().Kind() == reflect.Uint8 {
		w.add(label, path, "123", func(v reflect.Value) { v.SetBytes([]byte{1, 2, 3}) })
		if v.Len() > 0 {
			w.add(label, path, "flipped", func(v reflect.Value) {
				flipped := bytes.Clone(v.Bytes())
				flipped[len(flipped)-1] ^= 1
				v.SetBytes(flipped)
			})
		}
		return
	}
	if v.Len() == 0 {
		return
	}
	w.add(label, path, "twice", func(v reflect.Value) { v.Set(reflect.Append(v, deep(v.Index(0)))) })
	w.value(v.Index(0), label+"[0]", append(append([]int{}, path...), element))
	if v.Type().Elem().Kind() == reflect.Struct { // value has walked its fields
		return
	}
}

func numbers(kind reflect.Kind) []int64 {
	switch kind {
	case reflect.Int8:
		return []int64{-1, 0, 1, 2, 3, 4, 8, 127, -128}
	case reflect.Int16:
		return []int64{-1, 0, 1, 7, math.MaxInt16, math.MinInt16}
	case reflect.Int32:
		return []int64{-1, 0, 1, 7, math.MaxInt32, math.MinInt32}
	default:
		return []int64{-1, -2, 0, 1, 7, math.MaxInt64, math.MinInt64}
	}
}

// texts are the strings for a field, by what its name says it holds.
func texts(label string) []string {
	name := label[strings.LastIndexByte(label, '.')+1:]
	if strings.HasPrefix(name, "Topic") || strings.HasPrefix(name, "SubscribedTopicNames") {
		return []string{"", missingTopic, "a b", "..", strings.Repeat("x", 250), "__consumer_offsets"}
	}
	return []string{"", "gen-other", "a b", "1"}
}

func shorten(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%q×%d", s[:1], len(s))
	}
	return fmt.Sprintf("%q", s)
}
