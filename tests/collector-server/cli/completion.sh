# Completion in a real bash: every command, every option that --help shows, files elsewhere.
. "$(dirname "$0")/../../system/support/lib.sh"
"$sojourn" completion bash >completion.bash || fail "completion bash: $?"

# complete WORDS...: what bash offers for the last word
complete() {
    bash -c '. ./completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sojourn; printf "%s\n" "${COMPREPLY[@]}"' \
        bash "$@"
}

equal "commands" "$("$sojourn" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')" "$(complete sojourn '')"
equal "commands of help" "report" "$(complete sojourn help repo)"
equal "one command" "replay" "$(complete sojourn repl)"
commands=0
for command in $("$sojourn" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    "$sojourn" "$command" --help >help.txt
    shown=$(grep -o '^ \{2,6\}\(-[a-z], \)\?--[a-z-]*' help.txt | grep -o '\-\-[a-z-]*' | sort)
    # help is a command without options of its own
    [ "$command" = help ] || equal "options of $command" "$shown" "$(complete sojourn "$command" -- | sort)"
    commands=$((commands + 1))
done
[ "$commands" -ge 20 ] || fail "$commands commands only"
equal "one option" "--session" "$(complete sojourn report run.db --se)"
equal "files" "" "$(complete sojourn report ru)"
equal "arguments of the program" "" "$(complete sojourn record -- ls --a)"
bash -c '. ./completion.bash; complete -p sojourn' | grep -q -- '-o default' || fail "files are not completed"
"$sojourn" completion tcsh 2>error.txt
equal "another shell" 2 "$?"
