package config

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/resource"
)

const (
	maxCount = 10_000 // maximum number of sessions of one block
	maxKey   = 100    // maximum length of a key of for_each, which becomes part of names
)

type instance struct {
	address   resource.Address
	variables func() map[string]cty.Value // the variables that its expressions can use; most sessions have no such expression
}

// scope adds the variables of an instance to a scope.
func (i instance) scope(outer *hcl.EvalContext) *hcl.EvalContext {
	if i.variables == nil {
		return outer
	}
	inner := outer.NewChild()
	inner.Variables = i.variables()
	return inner
}

// instances are the sessions of a block.
type instances struct {
	list      []instance
	reach                     // what the block's expressions can use
	guessed   bool            // the number is unknown because of a mistake that has been reported
	mentioned map[string]bool // the live attributes that expressions mention, "" for all
}

// instances returns the sessions of a block. It reports a wrong count or for_each and then assumes one session, so
// that Load checks the rest as well.
func (l *loader) instances(name string, said content) instances {
	count, each := said.find("count"), said.find("for_each")
	switch {
	case count != nil && each != nil:
		l.complain(each.whole, `"count" and "for_each" exclude each other`,
			"Each says how many sessions there are. Keep one of the two.")
		return l.byCount(name, count)
	case count != nil:
		return l.byCount(name, count)
	case each != nil:
		return l.byEach(name, each)
	}
	return instances{list: []instance{{address: resource.One(name)}}}
}

// addresses are those of all sessions.
func (l *loader) addresses() map[resource.Address]bool {
	all := make(map[resource.Address]bool, len(l.sessions))
	for i := range l.sessions {
		all[l.sessions[i].Address] = true
	}
	return all
}

func (l *loader) byCount(name string, a *attribute) instances {
	n, known := 1, false
	if v, ok := l.work(a); ok {
		if whole, ok := v.whole(0, maxCount, "a number of sessions"); ok {
			n, known = whole, true
		}
	}
	all := instances{list: make([]instance, n), reach: reach{count: true}, guessed: !known}
	for i := range all.list {
		all.list[i] = instance{resource.Nth(name, i), func() map[string]cty.Value {
			return map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(int64(i))})}
		}}
	}
	return all
}

func (l *loader) byEach(name string, a *attribute) instances {
	all := instances{reach: reach{each: true}}
	v, ok := l.work(a)
	if !ok || !v.hasKeys() {
		all.list, all.guessed = []instance{unknownElement(name, v)}, true
		return all
	}
	for key, element := range v.Elements() {
		if v.Type().IsSetType() {
			key = element
		}
		if v.isKey(key) {
			all.list = append(all.list, instance{resource.Each(name, key.AsString()), eachOf(key, element)})
		}
	}
	return all
}

// eachOf makes the variables of a session of for_each.
func eachOf(key, element cty.Value) func() map[string]cty.Value {
	return func() map[string]cty.Value {
		return map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": element})}
	}
}

// hasKeys checks that the elements of a value can be keys of sessions.
func (v value) hasKeys() bool {
	if !v.isOpen() && !v.given() {
		return false
	}
	const summary = `"for_each" must be a map or a set of texts`
	switch t := v.Type(); {
	case t.IsSetType() && t.ElementType() != cty.String && t.ElementType() != cty.DynamicPseudoType:
		v.wrong(summary, "The elements of this set are no texts. Write them in quotes, like toset([\"1\", \"2\"]).")
	case isList(t) && !t.IsSetType():
		v.wrong(summary, "This is %s, whose elements have no names that stay. Write a map, or make it a set: toset([\"a\", \"b\"]).", v.kind())
	case !isList(t) && !isMap(t) && t != cty.DynamicPseudoType:
		v.wrong(summary, "This is %s. Write a map, like { a = 11, b = 12 }, or a set, like toset([\"a\", \"b\"]).", v.kind())
	case v.isOpen():
	case v.LengthInt() > maxCount:
		v.wrong(`"for_each" is too large`, "It has %d elements. Write at most %d.", v.LengthInt(), maxCount)
	default:
		return true
	}
	return false
}

// unknownElement replaces the elements of a for_each that is wrong or unknown: expressions that use it are checked by
// type only, if the type is known.
func unknownElement(name string, v value) instance {
	element := cty.DynamicPseudoType
	if v.Value != cty.NilVal && v.Type().IsCollectionType() {
		element = v.Type().ElementType()
	}
	return instance{resource.One(name), eachOf(cty.UnknownVal(cty.String).Mark(reported), cty.UnknownVal(element).Mark(reported))}
}

// isKey checks that a key of for_each can be part of a session's names.
func (v value) isKey(key cty.Value) bool {
	if key.IsNull() {
		v.wrong(`"for_each" has a null in it`, "Each element is the name of a session. Remove the null.")
		return false
	}
	typed := key.AsString()
	switch {
	case strings.TrimSpace(typed) == "":
		v.wrong(`"for_each" has an empty key`, "The key identifies a session in its block. Give each one a name, like \"a\".")
	case len(typed) > maxKey || strings.ContainsFunc(typed, unicode.IsControl):
		v.wrong(fmt.Sprintf("%q cannot be the key of a session", typed), "It becomes part of names: at most %d characters, and no control characters. Choose another.", maxKey)
	default:
		return true
	}
	return false
}
