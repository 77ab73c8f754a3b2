#compdef resourcectl resourced resource-agent
# Completion for zsh of resourcectl, resourced and resource-agent. The programs provide the candidates: `PROGRAM
# __complete -- WORD...` prints one a line, and ends with 3 if the shell should complete names of files.

local output word
local -i wanted
local -a candidates open line
for word in "${(@)words[1,CURRENT-1]}"; do
  if [[ $word == \~/* ]]; then line+=("$HOME/${(Q)word[3,-1]}"); else line+=("${(Q)word}"); fi
done
output=$("$line[1]" __complete -- "${(@)line[2,-1]}" "${(Q)PREFIX}" 2>/dev/null)
wanted=$?
candidates=("${(@f)output}")
candidates=(${candidates:#})
# The user has to continue candidates that end in these characters.
open=(${(M)candidates:#*[:=,]})
candidates=(${candidates:#*[:=,]})
(( $#open )) && compadd -V resourced -S '' -a open
(( $#candidates )) && compadd -V resourced -a candidates
if (( wanted == 3 )); then
  [[ $PREFIX == --*=* ]] && compset -P '*='
  _files
fi
(( $#open + $#candidates > 0 ))
