# Completion for fish of resourcectl, resourced and resource-agent. The programs provide the candidates: `PROGRAM
# __complete -- WORD...` prints one a line, and ends with 3 if the shell should complete names of files. The file is
# installed once for each program, under its name.

function __resourced_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l word (string unescape -- "$typed")
    or set word "$typed"
    set words (string replace -r '^~/' "$HOME/" -- $words)
    type -q -- "$words[1]"
    or return
    $words[1] __complete -- $words[2..-1] "$word" 2>/dev/null
    if test $status -eq 3
        __fish_complete_path "$word"
    end
end

complete -c (string replace -r '\.fish$' '' (status basename)) -f -a '(__resourced_complete)'
