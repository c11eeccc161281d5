package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
)

var room = Room{"", 64}

func TestPlacesLeaveRoomForOthers(t *testing.T) {
	var p Places
	for i, want := range []int{32, 16, 8, 4, 2, 1, 1, 0} {
		held := 0
		for {
			if _, ok := p.Try(fmt.Sprint(i), room); !ok {
				break
			}
			held++
		}
		if held != want {
			t.Errorf("party %d holds %d places, want %d", i, held, want)
		}
	}
}

// TestPlacesOfParties counts how much work of others comes before one party's, whatever these ask for.
func TestPlacesOfParties(t *testing.T) {
	for _, places := range []int{1, 2, 8} {
		synctest.Test(t, func(t *testing.T) {
			var p Places
			var order []string
			entered := make(chan func(), 400)
			work := func(party, part string) {
				go func() {
					leave, err := p.Enter(context.Background(), party, part, Room{"", places})
					if err != nil {
						t.Error(err)
						return
					}
					order = append(order, party+part) // one by one: by Wait
					entered <- leave
				}()
				synctest.Wait()
			}
			for i := range 300 {
				work("greedy", fmt.Sprint(i%7))
			}
			before := len(order)
			work("mine", "")
			for n := 301; n > 0; n-- {
				if len(entered) == 0 {
					t.Fatalf("%d places: %d wait for ever", places, n)
				}
				(<-entered)()
				synctest.Wait()
			}
			if at := slices.Index(order, "mine"); at > before+1 {
				t.Errorf("%d places: %d pieces of another's work came first", places, at-before)
			}
			of := slices.DeleteFunc(slices.Clone(order), func(who string) bool { return who == "mine" })
			for i := 14; i < 270; i++ { // the parts of a party take turns, too
				if of[i] == of[i-1] {
					t.Fatalf("%d places: one part has two turns: %q", places, order)
				}
			}
		})
	}
}

func TestPlacesInTwoRooms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Places
		ctx, cancel := context.WithCancel(context.Background())
		one, two := Room{"one", 2}, Room{"two", 2}
		leave, err := p.Enter(ctx, "a", "", one, two)
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() { _, err := p.Enter(ctx, "a", "", one, two); failed <- err }()
		synctest.Wait()
		if taken, waiting := p.Held(one); taken != 1 || waiting != 1 {
			t.Errorf("%d places are taken, %d wait", taken, waiting)
		}
		if _, err := p.Enter(ctx, "b", "", two); err != nil { // who waits holds nothing
			t.Error(err)
		}
		cancel()
		if err := <-failed; err == nil {
			t.Error("it has entered, and nobody waits for it")
		}
		if _, err := p.Enter(ctx, "c", "", one); err == nil {
			t.Error("it has entered, and nobody waits for it")
		}
		leave()
		leave()
		if taken, waiting := p.Held(one); taken != 0 || waiting != 0 || len(p.lines) > 0 {
			t.Errorf("%d places are taken, %d wait, in %d lines", taken, waiting, len(p.lines))
		}
	})
}

// TestRandomPlaces compares what is held with the rule, step by step.
func TestRandomPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		var p Places
		type held struct {
			who   string
			leave func()
		}
		entered := make(chan held, 10_000)
		var all []held
		ctx, cancel := context.WithCancel(context.Background())
		of := map[string]int{}
		for range 5000 {
			rooms := []Room{{"", 5}}
			host := fmt.Sprint(r.IntN(3))
			rooms = append(rooms, Room{host, 3})
			who := fmt.Sprint(r.IntN(4))
			if r.IntN(2) == 0 {
				go func() {
					if leave, err := p.Enter(ctx, who, host, rooms...); err == nil {
						entered <- held{who, leave}
					}
				}()
			} else if len(all) > 0 {
				i := r.IntN(len(all))
				all[i].leave()
				of[all[i].who]--
				all = slices.Delete(all, i, i+1)
			}
			synctest.Wait()
			for len(entered) > 0 {
				one := <-entered
				of[one.who]++
				all = append(all, one)
			}
			taken, waiting := p.Held(rooms[0])
			if taken != len(all) || taken > 5 {
				t.Fatalf("%d places are taken, and %d held", taken, len(all))
			}
			if waiting > 0 && taken == 0 {
				t.Fatalf("%d wait beside an empty room", waiting)
			}
			for who, n := range of {
				if n > 3 {
					t.Fatalf("%s holds %d of 5 places", who, n)
				}
			}
		}
		cancel()
		synctest.Wait()
		for _, one := range all {
			one.leave()
		}
		if len(p.taken)+len(p.of) > 0 {
			t.Errorf("left: %v %v", p.taken, p.of)
		}
	})
}
