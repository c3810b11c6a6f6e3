const picture=document.querySelector('svg.rota'),plot=picture.querySelector('svg.plot'),
  names=picture.querySelector('.names'),head=picture.querySelector('.head'),base=picture.width.baseVal.value,
  scroll=document.querySelector('.scroll'),story=document.querySelector('.story'),
  range=document.querySelector('.tools input');
function stretch(){
  const least=Math.max(base,scroll.clientWidth),width=least*2**range.value,inner=width-margin;
  picture.setAttribute('width',width);plot.setAttribute('width',inner);
  for(const label of plot.querySelectorAll('text[data-need]'))
    label.classList.toggle('tight',label.dataset.share*inner<+label.dataset.need);
  stay();
}
function stay(){for(const part of [names,head])part.setAttribute('transform',`translate(${scroll.scrollLeft})`);}
function light(bar){
  const needs=new Set((bar?bar.dataset.needs:'').split(' ').filter(Boolean));
  for(const other of plot.querySelectorAll('.bar[data-key]')){
    other.classList.toggle('lit',!!bar&&(other===bar||needs.has(other.dataset.key)));
    other.classList.toggle('dim',!!bar&&needs.size>0&&other!==bar&&!needs.has(other.dataset.key));
  }
}
plot.addEventListener('click',event=>{
  const thing=event.target.closest('g'),title=thing&&thing.querySelector('title');
  story.hidden=!title;story.textContent=title?title.textContent:'';
  light(title&&thing.dataset.key?thing:null);
});
range.addEventListener('input',stretch);scroll.addEventListener('scroll',stay);addEventListener('resize',stretch);stretch();
