package protocol

// maxTopicNameLength leaves room for "-<partition>" and the suffixes of
// directories in a file name of 255 bytes.
const maxTopicNameLength = 249

// CheckTopicName tells why a name is not a legal topic name, nil if it is. The
// sentences begin as Kafka's do, since tools show them.
func CheckTopicName(name string) *Error {
	switch {
	case name == "":
		return Errorf(InvalidTopicException, "Topic name is invalid: the empty string is not allowed")
	case name == "." || name == "..":
		return Errorf(InvalidTopicException, "Topic name is invalid: '%s' is not allowed", name)
	case len(name) > maxTopicNameLength:
		return Errorf(InvalidTopicException, "Topic name is invalid: the length of '%s' is longer than the max allowed length %d", name, maxTopicNameLength)
	}
	for i := range len(name) {
		if !topicNameByte(name[i]) {
			return Errorf(InvalidTopicException,
				"Topic name is invalid: '%s' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", name)
		}
	}
	return nil
}

func topicNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '.' || b == '_' || b == '-'
}
