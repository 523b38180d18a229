package api

import (
	"reflect"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
	"ottla/protocol/server"
	"ottla/protocol/wire"
)

// countErrors counts every error code of a response for the metrics, NONE among
// them, as Apache Kafka does (AbstractResponse.errorCounts). Messages have them in
// dozens of places; where, is found out once for each type.
func countErrors(req *server.Request, resp kmsg.Response) {
	value := reflect.ValueOf(resp).Elem()
	errorPlaces(value.Type()).count(req, value)
}

// countFetchErrors is countErrors for the message that kmsg does not encode.
func countFetchErrors(req *server.Request, resp *wire.FetchResponse) {
	req.CountError(resp.ErrorCode)
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			req.CountError(resp.Topics[i].Partitions[j].ErrorCode)
		}
	}
}

// places says where a struct has error codes.
type places struct {
	code   int // the field ErrorCode; -1: none
	within []placesWithin
}

// placesWithin is a field that is a list of structs with error codes.
type placesWithin struct {
	field int
	of    *places
}

var placesByType sync.Map // reflect.Type → *places

func errorPlaces(of reflect.Type) *places {
	if known, found := placesByType.Load(of); found {
		return known.(*places)
	}
	p := findPlaces(of)
	placesByType.Store(of, p)
	return p
}

// findPlaces looks through a message's type; those of kmsg do not contain themselves.
func findPlaces(of reflect.Type) *places {
	p := &places{code: -1}
	for i := range of.NumField() {
		field := of.Field(i)
		switch {
		case field.Name == "ErrorCode" && field.Type.Kind() == reflect.Int16:
			p.code = i
		case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct:
			if inner := findPlaces(field.Type.Elem()); inner.code >= 0 || len(inner.within) > 0 {
				p.within = append(p.within, placesWithin{i, inner})
			}
		}
	}
	return p
}

func (p *places) count(req *server.Request, value reflect.Value) {
	if p.code >= 0 {
		req.CountError(protocol.ErrorCode(value.Field(p.code).Int()))
	}
	for _, within := range p.within {
		list := value.Field(within.field)
		for i := range list.Len() {
			within.of.count(req, list.Index(i))
		}
	}
}
