// Checks a pack with the code of the Go checksum database (golang.org/x/mod/sumdb), and with nothing of ours:
// every checkpoint is signed and has the root of the leaves, and every proof holds.
//
//	main PACK [PROOF]
package main

import (
	"encoding/base64"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func read(parts ...string) string { return string(must(os.ReadFile(filepath.Join(parts...)))) }

func hashOf(text string) (hash tlog.Hash) {
	copy(hash[:], must(base64.StdEncoding.DecodeString(text)))
	return
}

func hashesOf(lines []string) (hashes []tlog.Hash) {
	for _, line := range lines {
		hashes = append(hashes, hashOf(line))
	}
	return
}

// The size and the root of a signed checkpoint. x/mod's own ParseTree wants the name of Go's database in the first line.
func open(text string, key note.Verifier) (int64, tlog.Hash) {
	body := must(note.Open([]byte(text), note.VerifierList(key))).Text
	lines := strings.Split(body, "\n")
	return must(strconv.ParseInt(lines[1], 10, 64)), hashOf(lines[2])
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

func main() {
	pack := os.Args[1]
	key := must(note.NewVerifier(strings.TrimSpace(read(pack, "vkey"))))
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) (hashes []tlog.Hash, err error) {
		for _, index := range indexes {
			hashes = append(hashes, stored[index])
		}
		return
	})
	roots := map[int64]tlog.Hash{}
	for at, line := range lines(read(pack, "log.tsv")) {
		stored = append(stored, must(tlog.StoredHashes(int64(at), []byte(line), reader))...)
	}
	files := must(filepath.Glob(filepath.Join(pack, "checkpoints", "*")))
	sort.Strings(files)
	for _, file := range files {
		size, root := open(read(file), key)
		if must(tlog.TreeHash(size, reader)) != root {
			log.Fatalf("%s has another root than the leaves", file)
		}
		roots[size] = root
	}
	pairs := 0
	for smaller, old := range roots {
		for larger, root := range roots {
			if smaller < larger {
				proof := must(tlog.ProveTree(larger, smaller, reader))
				if err := tlog.CheckTree(proof, larger, root, smaller, old); err != nil {
					log.Fatal(err)
				}
				pairs++
			}
		}
	}
	fmt.Printf("%d checkpoints signed, with the roots of the leaves; %d pairs consistent\n", len(roots), pairs)
	for _, file := range os.Args[2:] {
		head, text, _ := strings.Cut(read(file), "\n\n")
		parts := lines(head)
		leaf := must(base64.StdEncoding.DecodeString(strings.TrimPrefix(parts[1], "extra ")))
		index := must(strconv.ParseInt(strings.TrimPrefix(parts[2], "index "), 10, 64))
		size, root := open(text, key)
		proof := tlog.RecordProof(hashesOf(parts[3:]))
		if err := tlog.CheckRecord(proof, size, root, index, tlog.RecordHash(leaf)); err != nil {
			log.Fatal(err)
		}
		if tlog.CheckRecord(proof, size, root, index, tlog.RecordHash(append(leaf, '1'))) == nil {
			log.Fatal("a changed leaf has a proof")
		}
		fmt.Printf("leaf %d is in the log of %d\n", index, size)
	}
}
