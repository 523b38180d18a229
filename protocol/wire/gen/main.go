// Command gen makes layouts.txt, the outline of every request and response of
// Apache Kafka, out of the message definitions that kafka-clients carries:
//
//	unzip kafka-clients-4.4.0.jar 'common/message/*' -d DIR
//	go run ./protocol/wire/gen DIR/common/message > protocol/wire/layouts.txt
//
// Only what shapes the bytes is taken over: names, types, versions. The format
// is described at the head of the output and read by ../layout.go.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

type message struct {
	APIKey           int     `json:"apiKey"`
	Type             string  `json:"type"`
	Name             string  `json:"name"`
	ValidVersions    string  `json:"validVersions"`
	FlexibleVersions string  `json:"flexibleVersions"`
	Fields           []field `json:"fields"`
	CommonStructs    []field `json:"commonStructs"`
}

type field struct {
	Name             string  `json:"name"`
	Type             string  `json:"type"`
	Versions         string  `json:"versions"`
	NullableVersions string  `json:"nullableVersions"`
	TaggedVersions   string  `json:"taggedVersions"`
	Tag              *int    `json:"tag"`
	Fields           []field `json:"fields"`
}

const head = `# The outline of every request and response of Apache Kafka 4.4.0, made by gen
# from the message definitions in kafka-clients-4.4.0.jar. Do not edit.
#
# message:  key request|response Name validVersions flexibleVersions fields... .
# field:    Name:type:versions[:?nullableVersions][:#tag@taggedVersions]
# type:     a primitive, [] before it for an array; { fields... } follows a struct
`

var comment = regexp.MustCompile(`(?m)^\s*//.*$`)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: gen DIR, the folder common/message of kafka-clients")
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "*.json"))
	if err != nil || len(paths) == 0 {
		log.Fatalf("no definitions in %s: %v", os.Args[1], err)
	}
	var messages []message
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		var m message
		if err := json.Unmarshal(comment.ReplaceAll(text, nil), &m); err != nil {
			log.Fatalf("%s: %v", path, err)
		}
		if m.Type == "request" || m.Type == "response" {
			messages = append(messages, m)
		}
	}
	sort.Slice(messages, func(i, j int) bool {
		if messages[i].APIKey != messages[j].APIKey {
			return messages[i].APIKey < messages[j].APIKey
		}
		return messages[i].Type < messages[j].Type
	})
	fmt.Print(head)
	for _, m := range messages {
		if m.ValidVersions != "none" {
			fmt.Println(outline(m))
		}
	}
}

func outline(m message) string {
	structs := map[string][]field{}
	for _, common := range m.CommonStructs {
		structs[common.Name] = common.Fields
	}
	words := []string{strconv.Itoa(m.APIKey), m.Type, strings.TrimSuffix(strings.TrimSuffix(m.Name, "Request"), "Response"), m.ValidVersions, m.FlexibleVersions}
	words = appendFields(words, m.Fields, structs)
	return strings.Join(append(words, "."), " ")
}

func appendFields(words []string, fields []field, structs map[string][]field) []string {
	for _, f := range fields {
		element := strings.TrimPrefix(f.Type, "[]")
		isStruct := element[0] >= 'A' && element[0] <= 'Z'
		kind := f.Type
		if isStruct {
			kind = strings.TrimSuffix(f.Type, element) + "{}"
		}
		word := f.Name + ":" + kind + ":" + f.Versions
		if f.NullableVersions != "" && f.NullableVersions != "none" {
			word += ":?" + f.NullableVersions
		}
		if f.Tag != nil {
			word += fmt.Sprintf(":#%d@%s", *f.Tag, f.TaggedVersions)
		}
		words = append(words, word)
		if !isStruct {
			continue
		}
		inner := f.Fields
		if inner == nil {
			inner = structs[element]
		}
		if inner == nil {
			log.Fatalf("field %s: no struct %s", f.Name, element)
		}
		words = append(words, "{")
		words = appendFields(words, inner, structs)
		words = append(words, "}")
	}
	return words
}
