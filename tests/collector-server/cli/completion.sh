# Completion in a real bash: every command, every option that --help-all shows, files elsewhere.
. "$(dirname "$0")/../../system/support/lib.sh"
"$sojourn" completion bash >completion.bash || fail "completion bash: $?"

# complete WORDS...: prints what bash offers for the last word
complete() {
    bash -c '. ./completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sojourn; printf "%s\n" "${COMPREPLY[@]}"' \
        bash "$@"
}

equal "commands" "$("$sojourn" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')" "$(complete sojourn '')"
equal "commands of help" "report" "$(complete sojourn help repo)"
equal "one command" "replay" "$(complete sojourn repl)"
commands=0
for command in $("$sojourn" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    "$sojourn" "$command" --help-all >help.txt
    shown=$(grep -o '^ \{2,6\}\(-[a-z], \)\?--[a-z-]*' help.txt | grep -o '\-\-[a-z-]*' | sort)
    # help is a command without its own options
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

# Values: sessions and functions of the newest recording here, processes.
"$sojourn" record -o sojourn-1.db -- sh -c 'true' >record.txt 2>&1 || fail "record: $(cat record.txt)"
PATH="$(dirname "$sojourn"):$PATH"
export PATH
equal "sessions" "last" "$(complete sojourn report --session la)"
equal "a session" "1" "$(complete sojourn report --session 1)"
function=$("$sojourn" completion --words functions | head -n 1)
[ -n "$function" ] || fail "no functions"
complete sojourn attach "$$" | grep -qx "$$" || fail "process $$ is not offered"
"$sojourn" completion --words nonsense 2>error.txt
equal "another kind of words" 2 "$?"

# The script's completions work in fish itself.
"$sojourn" completion fish >completion.fish || fail "completion fish: $?"
fishes() {
    fish --no-config -c "source completion.fish; complete -C '$1'" | cut -f 1
}
for command in $("$sojourn" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    fishes "sojourn $command" | grep -qx "$command" || fail "fish does not offer $command"
    [ "$command" = help ] || equal "fish: options of $command" \
        "$(complete sojourn "$command" -- | sort)" "$(fishes "sojourn $command --" | sort)"
done
fishes "sojourn report --session " | grep -qx last || fail "fish offers no sessions"

# zsh is asked for the arguments that the script passes to zsh's functions.
"$sojourn" completion zsh >_sojourn || fail "completion zsh: $?"
zshes() {
    zsh -f -c 'compdef() { :; }; . ./_sojourn
        _arguments() { print -rl -- "$@"; }; _describe() { print -rl -- "${(@P)2}"; }
        compadd() { print -rl -- "${(@P)2}"; }; _files() { print files; }
        words=("$@"); CURRENT=$#; _sojourn' zsh "$@"
}
equal "zsh: commands" "$(complete sojourn '')" "$(zshes sojourn '' | sed 's/:.*//')"
for command in $("$sojourn" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    [ "$command" = help ] || equal "zsh: options of $command" \
        "$(complete sojourn "$command" -- | sort)" \
        "$(zshes sojourn "$command" -- | grep -o '^--[a-z-]*[a-z]' | sort)"
done
zshes sojourn report -- | grep -q '^--session=.*:_sojourn_words sessions$' || fail "zsh offers no sessions"
zsh -f -c '. ./_sojourn 2>/dev/null; compadd() { print -rl -- "${(@P)2}"; }; _sojourn_words sessions' |
    grep -qx last || fail "zsh finds no sessions"
