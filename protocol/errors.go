package protocol

import (
	"errors"
	"fmt"
	"strconv"
)

// String gives Kafka's name of the code, as in INVALID_TOPIC_EXCEPTION.
func (c ErrorCode) String() string {
	if row, known := errorCodes[c]; known {
		return row.name
	}
	return "ERROR_" + strconv.Itoa(int(c))
}

// Retriable tells whether a client may send the same request again.
func (c ErrorCode) Retriable() bool { return errorCodes[c].retriable }

// Error is a failure that a client may see: a Kafka code and, where the
// protocol has room for it, a sentence.
type Error struct {
	Code    ErrorCode
	Message string
}

// Errorf makes an Error with a sentence.
func Errorf(code ErrorCode, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Err makes an Error without a sentence of its own.
func (c ErrorCode) Err() *Error { return &Error{Code: c} }

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code.String()
	}
	return e.Code.String() + ": " + e.Message
}

// Is makes errors.Is compare by code alone.
func (e *Error) Is(target error) bool {
	var other *Error
	return errors.As(target, &other) && other.Code == e.Code
}

// CodeOf gives the code a client is to see for err: None for nil, the code of
// an Error in the chain, else UnknownServerError.
func CodeOf(err error) ErrorCode {
	if err == nil {
		return None
	}
	var known *Error
	if errors.As(err, &known) {
		return known.Code
	}
	return UnknownServerError
}

// MessageOf gives the sentence for the wire: nil where there is none.
func MessageOf(err error) *string {
	var known *Error
	if errors.As(err, &known) && known.Message != "" {
		return &known.Message
	}
	return nil
}
