package main

import (
	"fmt"
	"strings"
)

// writer writes appendTo of one struct.
func (e *emitter) writer(s *structure) {
	e.p("func (m *%s) appendTo(dst []byte, version int16) []byte {", s.goName)
	if e.usesFlexible(s) {
		e.p("flexible := %s", e.flexible())
	}
	for _, f := range s.fields {
		e.when(e.untagged(f), func() { e.write(f, "m."+f.goName) })
	}
	e.when(e.flexible(), func() { e.writeTags(s) })
	e.p("return dst\n}\n")
}

// usesFlexible tells whether a codec needs to know its flavour in a variable.
func (e *emitter) usesFlexible(s *structure) bool {
	for _, f := range s.fields {
		sized := f.array || f.base == "string" || f.base == "bytes"
		if sized && e.untagged(f) != "false" {
			return true
		}
		if sized && f.tag >= 0 && !f.tagged.clip(e.m.versions).empty() {
			return true
		}
	}
	return false
}

func (e *emitter) writeTags(s *structure) {
	var tagged []*field
	for _, f := range tagsOf(s) {
		if !f.tagged.clip(e.m.versions).empty() {
			tagged = append(tagged, f)
		}
	}
	if len(tagged) == 0 {
		e.p("dst = appendUvarint(dst, uint32(len(m.UnknownTags)))")
		e.p("dst = appendTags(dst, m.UnknownTags)")
		return
	}
	e.p("count, unknown := len(m.UnknownTags), m.UnknownTags")
	for _, f := range tagged {
		e.p("if %s { count++ }", e.tagSet(f))
	}
	e.p("dst = appendUvarint(dst, uint32(count))")
	for _, f := range tagged {
		e.p("if %s {", e.tagSet(f))
		e.p("dst, unknown = appendTagsBelow(dst, unknown, %d)", f.tag)
		e.p("dst = appendUvarint(dst, %d)", f.tag)
		e.p("start := len(dst)")
		e.writeTag(f, "m."+f.goName)
		e.p("dst = closeTag(dst, start)\n}")
	}
	e.p("dst = appendTags(dst, unknown)")
}

// tagSet is the Go condition under which a tagged field is written.
func (e *emitter) tagSet(f *field) string {
	set := negate(f.isDefault("m." + f.goName))
	if in := e.within(f.tagged); in != "true" {
		return in + " && " + set
	}
	return set
}

func negate(condition string) string {
	switch {
	case strings.HasPrefix(condition, "("):
		return "!" + condition
	case strings.HasPrefix(condition, "!"):
		return condition[1:]
	case strings.Contains(condition, " == "):
		return strings.Replace(condition, " == ", " != ", 1)
	}
	return "!" + condition
}

// writeTag writes the inside of a tagged field. The marker before a nullable
// struct is 0 for null there, and not -1 as in line.
func (e *emitter) writeTag(f *field, x string) {
	if f.inner != nil && !f.array && f.isNullable() {
		e.p("if %s == nil {\n dst = append(dst, 0)\n} else {\n dst = append(dst, 1)\n dst = %s.appendTo(dst, version)\n}", x, x)
		return
	}
	e.write(f, x)
}

// write writes one field in line.
func (e *emitter) write(f *field, x string) {
	switch {
	case f.array:
		e.writeArray(f, x)
	case f.inner != nil && f.isNullable():
		e.p("if %s == nil {\n dst = append(dst, 0xff)\n} else {\n dst = append(dst, 1)\n dst = %s.appendTo(dst, version)\n}", x, x)
	case f.inner != nil:
		e.p("dst = %s.appendTo(dst, version)", x)
	case f.isNullable():
		e.p("dst = appendNullable%s(dst, %s, flexible)", title(f.base), x)
	default:
		e.p("dst = %s", appendScalar(f.base, x))
	}
}

func (e *emitter) writeArray(f *field, x string) {
	if f.isNullable() {
		e.p("if %s == nil {\n dst = appendLength(dst, -1, flexible)\n} else {", x)
	}
	e.p("dst = appendLength(dst, len(%s), flexible)", x)
	if f.inner != nil {
		e.p("for i := range %s {\n dst = %s[i].appendTo(dst, version)\n}", x, x)
	} else {
		e.p("for _, element := range %s {\n dst = %s\n}", x, appendScalar(f.base, "element"))
	}
	if f.isNullable() {
		e.p("}")
	}
}

func appendScalar(base, x string) string {
	kind := scalars[base]
	value := x
	if kind.wire != kind.goType && kind.wire != "bytes" && kind.wire != "uuid" {
		value = kind.wire + "(" + x + ")"
	}
	switch kind.wire {
	case "int8":
		return "append(dst, byte(" + x + "))"
	case "uint16":
		return "appendInt16(dst, int16(" + x + "))"
	case "uuid":
		return "append(dst, " + x + "[:]...)"
	case "string", "bytes":
		return "append" + title(kind.wire) + "(dst, " + value + ", flexible)"
	}
	return "append" + title(kind.wire) + "(dst, " + value + ")"
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// reader writes readFrom of one struct; its fields have their defaults already.
func (e *emitter) reader(s *structure) {
	e.p("func (m *%s) readFrom(r *reader, version int16) {", s.goName)
	if e.usesFlexible(s) {
		e.p("flexible := %s", e.flexible())
	}
	for _, f := range s.fields {
		e.when(e.untagged(f), func() { e.read(f, "m."+f.goName, "r") })
	}
	e.when(e.flexible(), func() { e.readTags(s) })
	e.p("}\n")
}

func (e *emitter) readTags(s *structure) {
	var cases []func()
	for _, f := range tagsOf(s) {
		in := e.within(f.tagged)
		if in == "false" {
			continue
		}
		cases = append(cases, func() {
			e.p("case %d:", f.tag)
			if in != "true" {
				e.p("if !(%s) { return false }", in)
			}
			e.readTag(f, "m."+f.goName)
		})
	}
	if len(cases) == 0 {
		e.p("m.UnknownTags = r.tags(noTags)")
		return
	}
	e.p("m.UnknownTags = r.tags(func(number uint32, field *reader) bool {\nswitch number {")
	for _, one := range cases {
		one()
	}
	e.p("default:\n return false\n}\nreturn true\n})")
}

// readTag reads the inside of a tagged field.
func (e *emitter) readTag(f *field, x string) {
	if f.inner != nil && !f.array && f.isNullable() {
		e.readNullable(f, x, "field", 0)
		return
	}
	e.read(f, x, "field")
}

func (e *emitter) readNullable(f *field, x, r string, null int) {
	e.p("%s = nil\nif %s.present(%d) {\n %s = new(%s)", x, r, null, x, f.inner.goName)
	e.defaults(f.inner, x)
	e.p("%s.readFrom(%s, version)\n}", x, r)
}

// read reads one field from the reader named r.
func (e *emitter) read(f *field, x, r string) {
	switch {
	case f.array:
		nullable := e.within(f.nullable)
		e.p("%s = readSlice(%s, flexible, %d, %s, func(element *%s) {", x, r, f.elementSize(), nullable, strings.TrimPrefix(f.goType(), "[]"))
		if f.inner != nil {
			e.defaults(f.inner, "element")
			e.p("element.readFrom(%s, version)\n})", r)
		} else {
			e.p("*element = %s\n})", readScalar(f.base, r))
		}
	case f.inner != nil && f.isNullable():
		e.readNullable(f, x, r, -1)
	case f.inner != nil:
		e.p("%s.readFrom(%s, version)", x, r)
	case f.isNullable():
		e.p("%s = %s.nullable%s(flexible)", x, r, title(f.base))
	default:
		e.p("%s = %s", x, readScalar(f.base, r))
	}
}

func readScalar(base, r string) string {
	kind := scalars[base]
	argument := ""
	if kind.wire == "string" || kind.wire == "bytes" {
		argument = "flexible"
	}
	call := fmt.Sprintf("%s.%s(%s)", r, kind.wire, argument)
	if kind.wire != kind.goType && kind.wire != "bytes" && kind.wire != "uuid" {
		return kind.goType + "(" + call + ")"
	}
	return call
}

// checker writes check of one struct: what the version has no room for.
func (e *emitter) checker(s *structure) {
	e.p("func (m *%s) check(version int16) error {", s.goName)
	for _, f := range s.fields {
		x := "m." + f.goName
		in := f.versions.clip(e.m.versions)
		if in != e.m.versions && !f.ignorable {
			e.p("if !(%s) && %s { return errField(%q) }", e.within(in), negate(f.isDefault(x)), f.name)
		}
		if f.isNullable() && f.nullable.clip(in) != in && (f.array || f.inner == nil) {
			e.p("if %s && !(%s) && %s == nil { return errField(%q) }", e.within(in), e.within(f.nullable), x, f.name)
		}
		if f.inner == nil {
			continue
		}
		e.checkInner(f, x)
	}
	if !e.anyFlexible() {
		e.p("return nil\n}\n")
		return
	}
	e.checkUnknown(s)
	e.p("}\n")
}

func (e *emitter) checkInner(f *field, x string) {
	switch {
	case f.array:
		e.p("for i := range %s {\n if err := %s[i].check(version); err != nil { return err }\n}", x, x)
	case f.isNullable():
		e.p("if %s != nil {\n if err := %s.check(version); err != nil { return err }\n}", x, x)
	default:
		e.p("if err := %s.check(version); err != nil { return err }", x)
	}
}

// checkUnknown asks that unknown tags be ordered and none of them be known at
// the version.
func (e *emitter) checkUnknown(s *structure) {
	var always []string
	for _, f := range tagsOf(s) {
		in := e.within(f.tagged)
		switch in {
		case "false":
		case "true":
			always = append(always, fmt.Sprint(f.tag))
		default:
			e.p("if %s {\n if err := checkTags(m.UnknownTags, true, %d); err != nil { return err }\n}", in, f.tag)
		}
	}
	arguments := strings.Join(append([]string{"m.UnknownTags", e.flexible()}, always...), ", ")
	e.p("return checkTags(%s)", arguments)
}

// json writes appendJSON of one struct, fields in the order of the definition.
func (e *emitter) json(s *structure) {
	e.p("func (m *%s) appendJSON(dst []byte, version int16) []byte {", s.goName)
	e.p("dst = append(dst, '{')")
	for _, f := range s.fields {
		x := "m." + f.goName
		e.when(e.untagged(f), func() { e.printField(f, x) })
		if f.tag >= 0 && !f.tagged.clip(e.m.versions).empty() {
			e.p("if %s {", e.tagSet(f))
			e.printField(f, x)
			e.p("}")
		}
	}
	e.p("return append(dst, '}')\n}\n")
}

func (e *emitter) printField(f *field, x string) {
	e.p("dst = appendJSONName(dst, %q)", f.name)
	switch {
	case f.array:
		element := "element.appendJSON(dst, version)"
		if f.inner == nil {
			element = fmt.Sprintf("appendJSON%s(dst, %s)", title(scalars[f.base].goTypeName()), plain(f.base, "*element"))
		}
		goType := strings.TrimPrefix(f.goType(), "[]")
		e.p("dst = appendJSONArray(dst, %s, %t, func(dst []byte, element *%s) []byte { return %s })", x, f.isNullable(), goType, element)
	case f.inner != nil && f.isNullable():
		e.p("if %s == nil {\n dst = append(dst, \"null\"...)\n} else {\n dst = %s.appendJSON(dst, version)\n}", x, x)
	case f.inner != nil:
		e.p("dst = %s.appendJSON(dst, version)", x)
	case f.isNullable():
		e.p("dst = appendJSONNullable%s(dst, %s)", title(f.base), x)
	default:
		e.p("dst = appendJSON%s(dst, %s)", title(scalars[f.base].goTypeName()), plain(f.base, x))
	}
}

// goTypeName picks the printer: every integer is printed by one.
func (s scalar) goTypeName() string {
	switch s.wire {
	case "int8", "int16", "uint16", "int32", "int64":
		return "int"
	}
	return s.wire
}

func plain(base, x string) string {
	if scalars[base].goTypeName() == "int" {
		return "int64(" + x + ")"
	}
	return x
}
