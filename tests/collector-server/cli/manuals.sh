# Every manual page is sound, and every option of a command is in its page.
. "$(dirname "$0")/../../system/lib.sh"
manuals=$2

for page in "$manuals"/*.[18]; do
    mandoc -Tlint -Wwarning "$page" >lint.txt 2>&1 || fail "$page: $(cat lint.txt)"
done

# documented PAGE COMMAND...
documented() {
    page=$manuals/$1
    shift
    "$@" >help.txt
    for option in $(grep -o '^ *\(-[a-z], \)\?--[a-z-]*' help.txt | grep -o '\-\-[a-z-]*'); do
        case $option in
        --help | --version) continue ;;
        esac
        grep -q -- "Fl -${option#--}" "$page" || fail "$option is not in $page"
    done
}

documented sojournd.8 "$sojournd" --help
for command in $("$sojourn" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    grep -q "^.It Cm $command$" "$manuals/sojourn.1" || fail "$command is not in sojourn.1"
    case $command in
    help | version) ;;
    *) documented "sojourn-$command.1" "$sojourn" "$command" --help ;;
    esac
done
