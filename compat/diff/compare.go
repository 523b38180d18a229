package diff

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Answer is one line of a book: what was asked, by a name that only it has, and what came back.
type Answer struct{ Name, Text string }

// Shorten leaves out the long answers that the story has given before; Answers puts them back.
func Shorten(lines []string) []string {
	var short []string
	first := map[string]string{} // by answer: the name that has it
	for _, line := range lines {
		name, text, named := strings.Cut(line, arrow)
		switch said, before := first[text]; {
		case strings.HasPrefix(line, "# "):
			clear(first)
		case !named || len(text) < 80:
		case before:
			line = name + same + said
		default:
			first[text] = name
		}
		short = append(short, line)
	}
	return short
}

// same stands for an answer that another of the story has, too; its name follows.
const same = arrow + "as "

// Answers gives the lines of a book their names: what stands before the arrow, or else their number, below the story's name.
func Answers(lines []string) []Answer {
	var answers []Answer
	story, number, texts := "", 0, map[string]string{}
	for _, line := range lines {
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			story, number = heading, 0
			continue
		}
		number++
		name, text, named := strings.Cut(line, arrow)
		if !named {
			name, text = strconv.Itoa(number), line
		}
		if other, again := strings.CutPrefix(text, "as "); again {
			text = texts[story+"/"+other]
		}
		texts[story+"/"+name] = text
		answers = append(answers, Answer{story + "/" + name, text})
	}
	return answers
}

// Allowed are answers that may differ, and why.
type Allowed struct {
	Pattern string // of names, as in path.Match but that * goes over slashes
	Why     string // an entry of DIFFERENCES.md by its number, or what is not built yet
	matcher *regexp.Regexp
	used    bool
}

// ReadAllowed reads allowed.txt: lines of PATTERN, tab, number of an entry or "not built: …"; # begins a comment.
func ReadAllowed(r io.Reader) ([]*Allowed, error) {
	var list []*Allowed
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		pattern, why, ok := strings.Cut(line, "\t")
		if !ok || path.Clean(pattern) == "*" {
			return nil, fmt.Errorf("%q is no line of PATTERN, tab, reason", line)
		}
		quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
		list = append(list, &Allowed{Pattern: pattern, Why: strings.TrimSpace(why), matcher: regexp.MustCompile("^" + quoted + "$")})
	}
	return list, lines.Err()
}

// Difference is an answer that is not as recorded.
type Difference struct {
	Answer
	Want  string
	After string // the name of the answer before it
}

// Compare gives the differences that no line of allowed explains. Answers that were recorded and not asked for are none: they
// belong to APIs that the server does not have.
func Compare(got, recorded []Answer, allowed []*Allowed) (unexplained []Difference, explained int) {
	want := map[string]string{}
	for _, a := range recorded {
		want[a.Name] = a.Text
	}
	last := ""
	for _, a := range got {
		text, known := want[a.Name]
		if !known {
			text = "(not recorded: make control)"
		}
		if text != a.Text {
			i := slices.IndexFunc(allowed, func(l *Allowed) bool { return l.matcher.MatchString(a.Name) })
			if i >= 0 {
				allowed[i].used = true
				explained++
			} else {
				unexplained = append(unexplained, Difference{a, text, last})
			}
		}
		last = a.Name
	}
	return unexplained, explained
}

// Unused gives the lines that have explained nothing.
func Unused(allowed []*Allowed) []string {
	var names []string
	for _, l := range allowed {
		if !l.used {
			names = append(names, l.Pattern)
		}
	}
	return names
}

var apiOf = regexp.MustCompile(`(?:^|: )([A-Z][A-Za-z]+) -?\d+`)

// Counts gives how many answers there are by API.
func Counts(answers []Answer) map[string]int {
	counts := map[string]int{}
	for _, a := range answers {
		for _, text := range []string{a.Name[strings.LastIndexByte(a.Name, '/')+1:], a.Text} {
			if found := apiOf.FindStringSubmatch(text); found != nil {
				counts[found[1]]++
				break
			}
		}
	}
	return counts
}

// Uncovered gives what the server advertises without at least a right and a wrong request having been asked, by the answers of the
// book apis.
func Uncovered(answers []Answer) []string {
	right, wrong := map[string]bool{}, map[string]bool{}
	for _, a := range answers {
		story, what, _ := strings.Cut(a.Name, "/")
		api, on, ok := strings.Cut(story, " on the ")
		words := strings.SplitN(what, " ", 3)
		if !ok || len(words) < 3 {
			continue
		}
		key := strings.TrimSuffix(on, "'s listener") + " " + api + " " + words[1]
		right[key] = right[key] || strings.HasSuffix(words[2], "right") && strings.HasPrefix(a.Text, "{") // no closed connection
		wrong[key] = wrong[key] || !strings.HasSuffix(words[2], "right")
	}
	var missing []string
	for _, a := range answers {
		api, ok := strings.CutPrefix(a.Name, "advertised/")
		var lowest, highest int
		if !ok || strings.Contains(api, " supports ") || strings.Contains(api, " has finalized ") {
			continue
		}
		if _, err := fmt.Sscanf(a.Text, "%d-%d", &lowest, &highest); err != nil {
			missing = append(missing, a.Name+" says "+a.Text)
			continue
		}
		if strings.HasSuffix(api, " Produce") {
			lowest = 3 // less is only advertised
		}
		for version := lowest; version <= highest; version++ {
			if key := fmt.Sprintf("%s %d", api, version); !right[key] || !wrong[key] {
				missing = append(missing, key)
			}
		}
	}
	return missing
}
